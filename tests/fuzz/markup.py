"""Pages: charset, markup, language, dates, sketch."""

from math import isfinite

from tests.fuzz.target import Target

from vedette.parse.html.page import parse_page
from vedette.parse.similarity.minhash import build_sketch
from vedette.parse.similarity.shingles import fingerprint_text, shingle_text
from vedette.parse.text.charsets import decode_page
from vedette.parse.text.dates import find_dates
from vedette.parse.text.language import detect_language

__all__ = ["MARKUP"]

NOW_S = 1.7e9
HOME = "https://host.example/a/list.xml"
CONTENT_TYPES = ("", "text/html", "text/html; charset=utf-8", "text/html;charset=EUC-JP", "application/xhtml+xml")

PAGES = (
    b"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page &amp; more</title><base href="/b/">
<meta name="robots" content="noindex, max-snippet:20"><meta http-equiv="refresh" content="3; url='/x'">
<link rel="canonical" href="/c"><link rel="alternate" hreflang="de" href="/de"><meta name=description content='d'>
<link rel="alternate" type="application/rss+xml" href="/f"><meta property="article:published_time" content="2024-05-01">
<script type="application/ld+json">{"@type":"Article","datePublished":"2024-01-01","@graph":[{"a":[1]}]}</script></head>
<body><nav><a href="/">Home</a></nav><h1>Title</h1><p>Words <b>and</b> words.<table><tr><td>x<td>y</table>
<a href='/y' rel="nofollow">y<img alt="z"></a><time datetime="2024-02-02">then</time>
<div hidden>no</div></body></html>""",
    "<meta charset=shift_jis><title>検索</title><p>検索エンジン<a href=/次>次".encode("shift_jis"),
    "\ufeff<title>Wide</title><svg><title>no</title></svg><template><a href=x></template>".encode("utf-16-le"),
    b"<?xml version='1.0' encoding='iso-8859-2'?><html><title>\xb1</title><![CDATA[x]]><textarea><a href=n></textarea>",
    b"<noscript>Enable scripts</noscript><div id=root></div><script>a='</scr'+'ipt>'</script><!--[if IE]>x<![endif]-->",
)
PAGE_TOKENS = (
    *(
        b"<a href=",
        b"</a>",
        b"<script>",
        b"</script>",
        b"<!--",
        b"-->",
        b"<title>",
        b"<div>",
        b"</p>",
        b"&#x",
        b"hidden",
    ),
    *(b"<meta ", b"charset=", b"content=", b"<base href=", b"rel=canonical", b"<iframe src=", b"<style>", b"<h2 id="),
    *(b"<table>", b"<td>", b"<pre>", b"application/ld+json", b"datePublished", b"<svg>", b"<template>", b"<noscript>"),
)


def check_markup(data: bytes) -> None:
    """All steps run; strings can be written to a file, and the output is no larger than the input."""
    text = decode_page(data, CONTENT_TYPES[len(data) % len(CONTENT_TYPES)]).text
    page = parse_page(text)
    strings = [page.title, page.text, page.main, page.description, page.language, *(link.href for link in page.links)]
    assert all(each.encode() is not None for each in strings)
    assert len(page.main) <= len(page.text) <= 2 * len(text)
    assert len(page.links) <= len(text)
    assert len(detect_language(page.main, page.language)) <= 8
    dates = find_dates(page.stamps, page.linked_data, HOME, "", NOW_S)
    assert all(isfinite(each) for each in (dates.published_s, dates.modified_s) if each is not None)
    assert len(fingerprint_text(page.main)) == len(fingerprint_text(""))
    build_sketch(shingle_text(page.main))


MARKUP = Target(check_markup, PAGES, PAGE_TOKENS)
