from skitter.archive.rows import Said
from skitter.archive.texts_plain import Texts
from skitter.model import Exchange

def texts(
    exchange: Exchange,
    head: bytes,
    request: bytes,
    unique: str,
    uri: str,
    key: str,
    mime: str,
    detected: str,
    block: bytes,
    payload: bytes,
    said: Said | None,
    outlinks: str,
    /,
) -> Texts: ...
def digest_field(digest: bytes, /) -> str: ...
def warc_date(at: float, /) -> str: ...
