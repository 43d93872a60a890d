"""Object storage of a cluster: an S3-compatible bucket or a mounted folder, with errors in one line.

Credentials, region and endpoint of S3 come from the usual environment variables (``AWS_ACCESS_KEY_ID``,
``AWS_SECRET_ACCESS_KEY``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``), never from the database or the command line.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from vedette.errors import ClusterError, UsageError

CLUSTER_KEY = "cluster"
RETRY_S = 10
CHUNK_BYTES = 8 << 20
MAX_SMALL_BYTES = 256 << 20

_URL = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/-]*)?|file:///.+")


class StorageError(ClusterError):
    """Storage error: the object storage of a cluster does not respond, or refuses a request."""


class StoredObject(NamedTuple):
    """An object in storage: its key and size."""

    key: str
    size_bytes: int


class ObjectStorage:
    """Object storage at a URL, ``s3://BUCKET/PREFIX`` or ``file:///FOLDER``."""

    def __init__(self, url: str) -> None:
        parse_url(url)
        self._obstore, self.url = _load_obstore(), url.rstrip("/")
        self._store = self._open()

    def _open(self) -> Any:  # noqa: ANN401 - a store of a library that is installed only with the extra
        if self.url.startswith("file:"):
            with self._explain():
                return self._obstore.store.from_url(self.url, mkdir=True)
        with self._explain():
            return self._obstore.store.from_url(
                self.url,
                client_options={"allow_http": True, "connect_timeout": "5s", "timeout": "60s"},
                retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=RETRY_S)},
                region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
            )

    def put(self, key: str, data: bytes) -> None:
        """Store an object atomically."""
        with self._explain():
            self._obstore.put(self._store, key, data)

    def put_range(self, key: str, path: Path, start: int, end: int) -> None:
        """Store a part of a file as an object."""
        with path.open("rb") as file, self._explain():
            file.seek(start)
            self._obstore.put(self._store, key, _read_chunks(file, end - start))

    def get(self, key: str) -> bytes | None:
        """Return a small object; None if it does not exist."""
        with suppress(FileNotFoundError), self._explain():
            found = self._obstore.get(self._store, key)
            if found.meta["size"] > MAX_SMALL_BYTES:
                raise StorageError(
                    f"{self.url}/{key} is too large ({found.meta['size']} bytes): restore the storage from a backup"
                )
            return bytes(found.bytes())
        return None

    def append_to(self, path: Path, key: str, length: int) -> None:
        """Append an object of this length to a file; a longer object is cut off."""
        with path.open("ab") as file, self._explain():
            for chunk in self._obstore.get(self._store, key).stream(CHUNK_BYTES):
                length -= file.write(chunk[:length])
                if length <= 0:
                    break

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """List the objects below a prefix."""
        with self._explain():
            for batch in self._obstore.list(self._store, prefix):
                for one in batch:
                    yield StoredObject(one["path"], one["size"])

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; it is no error if they no longer exist."""
        for key in keys:
            with suppress(FileNotFoundError), self._explain():
                self._obstore.delete(self._store, key)

    @contextmanager
    def _explain(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise StorageError(
                    f"{self.url}: there is no such bucket: create it, or check --storage and AWS_ENDPOINT_URL"
                ) from None
            raise
        except (self._obstore.exceptions.BaseError, OSError) as error:
            raise StorageError(
                f"cannot use storage {self.url}: {_summarize(error)}; check --storage, AWS_ACCESS_KEY_ID, "
                "AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL"
            ) from None


def parse_url(url: str) -> str:
    """Check and return the URL of a storage.

    >>> parse_url("s3://crawl/vedette")
    's3://crawl/vedette'
    """
    if not _URL.fullmatch(url):
        raise UsageError(
            f'"{url}" is not a storage URL: use s3://BUCKET/PREFIX, or file:///FOLDER for a mounted folder'
        )
    return url


def claim_storage(url: str, cluster: str) -> None:
    """Mark a storage as belonging to a cluster; fail if it belongs to another one.

    This also shows that the storage is writable.
    """
    storage = ObjectStorage(url)
    owner = (storage.get(CLUSTER_KEY) or b"").decode("utf-8", "replace")
    if owner and owner != cluster:
        raise ClusterError(f"{url} contains copies of cluster {owner}, not {cluster}: use another prefix")
    storage.put(CLUSTER_KEY, cluster.encode())


def _load_obstore() -> Any:  # noqa: ANN401 - the module, which is installed only with the extra
    try:
        import obstore
        import obstore.store
    except ImportError:
        raise UsageError('a cluster needs the extra "cluster": run pip install "vedette[cluster]"') from None
    return obstore


def _read_chunks(file: Any, size_bytes: int) -> Iterator[bytes]:  # noqa: ANN401 - any binary file
    while size_bytes > 0 and (chunk := file.read(min(size_bytes, CHUNK_BYTES))):
        size_bytes -= len(chunk)
        yield chunk


def _summarize(error: BaseException) -> str:
    """Return the first line of an error, without the addresses and times of the attempts."""
    line = str(error).strip().partition("\n")[0]
    found = re.search(r"<Message>([^<]*)|HTTP error: (.*)|status (\d+ [A-Z][A-Za-z ]+)", str(error))
    return next((group for group in found.groups() if group), line) if found else line[:200]
