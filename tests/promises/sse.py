"""What the SSE decoder and encoder promise."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="sse:decoder:any-split",
        source="issue 3, Proven by; contract page §11.2",
        sentence="A byte stream gives the same frames, then the same error, however it is cut into chunks.",
    ),
    Promise(
        id="sse:decoder:line-ends",
        source="field report F049",
        sentence="Only CR, LF and CRLF end a line; U+2028, U+2029, U+0085, VT, FF and FS stay inside their data.",
    ),
    Promise(
        id="sse:decoder:fields",
        source="contract page §11.4; the SSE rules of WHATWG",
        sentence="Data lines are joined, the last name and id win, one space after a colon and a BOM are dropped.",
    ),
    Promise(
        id="sse:decoder:comments",
        source="field report F053",
        sentence="A comment is counted as life, yields no frame and counts for no frame's size.",
    ),
    Promise(
        id="sse:decoder:limits",
        source="contract page §10, §11; issue 3",
        sentence="A line, frame, stream or event over its limit is an error after the frames before it, and stays one.",
    ),
    Promise(
        id="sse:decoder:oversize",
        source="design D17; contract page §24.9",
        sentence="A frame that may exceed its limit comes out with size and SHA-256 of its data, which is never kept.",
    ),
    Promise(
        id="sse:decoder:utf8",
        source="contract page §11.3",
        sentence="A frame that is no UTF-8 is an error; a comment may be anything.",
    ),
    Promise(
        id="sse:decoder:rest",
        source="contract page §11.8",
        sentence="What stands unfinished at the end of input comes out of `close`, apart from the frames before it.",
    ),
    Promise(
        id="sse:encoder:round-trip",
        source="issue 3",
        sentence="An encoded frame decodes to the same event, id and data, and no value can end its field.",
    ),
)
