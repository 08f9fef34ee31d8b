"""The anonymous signature of a WACZ package (WACZ Signing and Verification 0.1.0): ECDSA on P-384 with SHA-256.

It says that whoever has the private key signed this list of digests, and nothing of who that is. A package is
signed with a new key that nobody keeps, or with a key file of the operator's, by which packages are known as his.
"""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from skitter import __version__
from skitter.errors import UsageError

_HASH = ec.ECDSA(hashes.SHA256())


def sign(said: str, created: str, key_file: Path | None) -> dict[str, str]:
    """The `signedData` of a digest, such as `sha256:...`."""
    key = _read_key(key_file) if key_file is not None else ec.generate_private_key(ec.SECP384R1())
    size = (key.curve.key_size + 7) // 8
    r, s = decode_dss_signature(key.sign(said.encode(), _HASH))
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return {
        "hash": said,
        # Both numbers at their full length, one after the other, as browsers write and read it.
        "signature": base64.b64encode(r.to_bytes(size, "big") + s.to_bytes(size, "big")).decode(),
        "publicKey": base64.b64encode(public).decode(),
        "created": created,
        "software": f"skitter {__version__}",
    }


def is_signature_of(signature: bytes, public: bytes, said: str) -> bool:
    try:
        key = serialization.load_der_public_key(public)
        if not isinstance(key, ec.EllipticCurvePublicKey):
            return False
        size = (key.curve.key_size + 7) // 8
        if len(signature) == 2 * size:
            r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
            signature = encode_dss_signature(r, s)
        key.verify(signature, said.encode(), _HASH)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"cannot read the key {path} ({error}): name a private key in PEM form") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UsageError(
            f"{path} is no key of an elliptic curve: openssl ecparam -name secp384r1 -genkey -noout makes one"
        )
    return key
