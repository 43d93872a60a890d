"""Does a reader of documentation find the page that answers, among the first three results?

33 questions over kafka.apache.org, flink.apache.org and incubator.apache.org, as people type them: some are words, some
are sentences. Each has the pages that answer it, written down by reading the sites before any search was run. Of
documentation that repeats itself by version, releases before 3.0 do not count as an answer. The data folder is one
that the product crawled, such as `make bench-real-sites` leaves with ``--keep``. The last line is one JSON object.

    python bench/questions.py --data FOLDER [--show]
"""

import argparse
import json
import re
import sys
from time import process_time
from typing import NamedTuple

import vedette

SHOWN = 3
ASKED = 28


class Question(NamedTuple):
    """The query, the host that has the answer, and a pattern of the paths of pages that give it."""

    text: str
    host: str
    path: str

    def is_answered_by(self, url: str) -> bool:
        """Check whether a result is one of the pages that answer."""
        found = re.fullmatch(r"https?://(?:www\.)?([^/:]+)(?::\d+)?(/[^?#]*)", url)
        return found is not None and found[1] == self.host and re.fullmatch(self.path, found[2]) is not None


KAFKA, FLINK, INCUBATOR = "kafka.apache.org", "flink.apache.org", "incubator.apache.org"
_VERSION = r"/(?:(?:3\d|4\d)/)?"


def _kafka(text: str, path: str) -> Question:
    """A question whose answer may be of any release from 3.0 on."""
    return Question(text, KAFKA, rf"{_VERSION}(?:{path})(?:\.html|/|/index\.html)?")


def _streams(text: str, page: str) -> Question:
    return _kafka(text, rf"(?:documentation/)?streams/(?:{page})")


QUESTIONS = (
    _kafka("how does log compaction work", "documentation|design|documentation/design"),
    _kafka("kafka quickstart", "quickstart|documentation/quickstart"),
    _kafka(
        "what is the default of session.timeout.ms",
        "documentation|configuration|documentation/.*|generated/consumer_.*",
    ),
    _kafka(
        "exactly once delivery semantics", "documentation|design|(?:documentation/)?streams/core-concepts|semantics"
    ),
    _kafka("configure SSL encryption between brokers", "documentation|security|documentation/security"),
    _kafka("migrate a cluster from ZooKeeper to KRaft", "documentation|ops|documentation/.*"),
    _kafka("geo-replication with MirrorMaker", "documentation|ops|documentation/.*"),
    _kafka("list of error codes of the protocol", "protocol|generated/protocol_errors"),
    _kafka("what is kafka used for", "uses|intro|documentation"),
    _kafka("kafka connect single message transforms", "documentation|connect|generated/connect_transforms"),
    _kafka("how do I report a security vulnerability in Kafka", "project-security|cve-list"),
    _kafka("kafka coding guidelines", "coding-guide"),
    _kafka("download kafka", "downloads?"),
    _streams("how to join two streams in Kafka Streams", "developer-guide/dsl-api"),
    _streams("reset a kafka streams application", "developer-guide/app-reset-tool"),
    _streams("query the state stores of another instance", "developer-guide/interactive-queries"),
    _streams("unit test a topology with TopologyTestDriver", "developer-guide/testing"),
    _streams("stream partitions, tasks and threading model", "architecture"),
    Question("who uses flink in production", FLINK, r"/what-is-flink/powered-by/.*|/"),
    Question("flink roadmap", FLINK, r"/what-is-flink/roadmap/.*"),
    Question("how to review a pull request for flink", FLINK, r"/how-to-contribute/reviewing-prs/.*"),
    Question("where can I ask questions about Flink", FLINK, r"/how-to-contribute/getting-help/.*|.*/community/.*"),
    Question("java code style flink", FLINK, r"/how-to-contribute/code-style-and-quality-(?:java|formatting)/.*"),
    Question(
        "savepoints for upgrading and migrating applications", FLINK, r"/what-is-flink/flink-operations/.*|.*save.*"
    ),
    Question("bounded and unbounded streams", FLINK, r"/what-is-flink/flink-architecture/.*|/"),
    Question("fraud detection use case event-driven applications", FLINK, r"/what-is-flink/use-cases/.*|/20.*fraud.*"),
    Question("download flink", FLINK, r"/downloads/.*"),
    Question("how does a podling retire", INCUBATOR, r"/guides/retirement\.html"),
    Question("what does a mentor have to do", INCUBATOR, r"/guides/(?:mentor|roles_and_responsibilities)\.html"),
    Question("choosing a name for a new project", INCUBATOR, r"/guides/names\.html"),
    Question("what must be done before graduation", INCUBATOR, r"/guides/graduation\.html|/cookbook/.*"),
    Question("incubator faq", INCUBATOR, r"/faq\.html"),
    Question("how do I write an incubator proposal", INCUBATOR, r"/guides/proposal\.html"),
)


def main() -> None:
    """Search all questions; print the results, and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--show", action="store_true", help="print the first results of each question")
    arguments = parser.parse_args()
    folder = vedette.open_folder(arguments.data)
    good, started_s = 0, process_time()
    for question in QUESTIONS:
        urls = [result.url for result in folder.search(question.text, count=SHOWN).results]
        is_good = any(map(question.is_answered_by, urls))
        good += is_good
        print(f"{'yes' if is_good else 'no':4}{question.text}")
        if arguments.show or not is_good:
            print("".join(f"      {url}\n" for url in urls or ["nothing found"]), end="")
    print(f"\n{good} of {len(QUESTIONS)} questions are answered by one of the first {SHOWN} results")
    print(json.dumps({"good": good, "questions": len(QUESTIONS), "cpu_s": round(process_time() - started_s, 1)}))
    sys.exit(good < ASKED)


if __name__ == "__main__":
    main()
