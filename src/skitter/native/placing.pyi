from skitter.archive.rows import Pieces

def placed_texts(
    line: bytes, row: Pieces | None, offset: int, length: int, segment: str, revisit_of: str, /
) -> tuple[bytes, tuple[bytes, ...]]: ...
