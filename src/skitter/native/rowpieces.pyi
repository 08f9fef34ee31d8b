from skitter.archive.rows import Said
from skitter.model import Exchange

def row_pieces(
    exchange: Exchange,
    said: Said,
    uri: str,
    surt: str,
    digest: str,
    mime: str,
    text: bytes,
    text_digest: bytes,
    with_links: bool,
    /,
) -> tuple[bytes, bytes, bytes]: ...
def utf8(text: str, /) -> bytes: ...
