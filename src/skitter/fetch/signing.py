"""Requests signed as Web Bot Auth has it: who asks can be checked by whoever is asked.

HTTP Message Signatures (RFC 9421) with Ed25519 over the authority and the `Signature-Agent` field, which names
where the public key lies. Loaded only where `identity.signing_key` is set. Signs what is asked of a host and
nothing else; the private key stays in this process.
"""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from skitter.clock import Clock
from skitter.errors import SettingsError, UsageError
from skitter.secret_files import read_secret

DIRECTORY = ".well-known/http-message-signatures-directory"
_LABEL = "sig1"
_TAG = "web-bot-auth"
# Seconds. Long enough for clocks that differ and for a slow connection, short for who would use it again.
_LIFETIME = 300
_NONCE = 32


class RequestSigner:
    def __init__(self, key: Ed25519PrivateKey, agent: str, clock: Clock) -> None:
        self._key, self._clock = key, clock
        self._key_id = thumbprint(key)
        self._agent = agent
        self._agent_line = f'Signature-Agent: {_LABEL}="{agent}"'.encode()

    def lines(self, authority: str) -> list[bytes]:
        """The header lines of one request. `authority` is the host, with its port where that is not the usual."""
        created = int(self._clock.now())
        nonce = b64encode(os.urandom(_NONCE)).decode()
        covered = f'("@authority" "signature-agent";key="{_LABEL}")'
        parameters = (
            f'{covered};created={created};expires={created + _LIFETIME};keyid="{self._key_id}";alg="ed25519"'
            f';nonce="{nonce}";tag="{_TAG}"'
        )
        base = (
            f'"@authority": {authority.lower()}\n"signature-agent";key="{_LABEL}": "{self._agent}"\n'
            f'"@signature-params": {parameters}'
        )
        signature = b64encode(self._key.sign(base.encode())).decode()
        return [
            self._agent_line,
            f"Signature-Input: {_LABEL}={parameters}".encode(),
            f"Signature: {_LABEL}=:{signature}:".encode(),
        ]


def open_signer(file: str, agent: str, clock: Clock) -> RequestSigner | None:
    """None where requests are not to be signed. Raises where the key cannot be had: half an identity is none."""
    if not file:
        return None
    if not agent:
        raise SettingsError(
            "identity.signing_key needs identity.signature_agent: the https URL of the host whose "
            f"/{DIRECTORY} has the public key (skitter identity writes it)"
        )
    return RequestSigner(read_key(Path(file)), agent.rstrip("/"), clock)


def make_key(file: Path) -> Ed25519PrivateKey:
    """A new key in a new file that only its owner reads."""
    key = Ed25519PrivateKey.generate()
    content = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(f"{file} exists: name a new file, or leave out --new to show its key") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error
    with os.fdopen(fd, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    return key


def read_key(file: Path) -> Ed25519PrivateKey:
    content = read_secret(file, "identity.signing_key")
    try:
        key = serialization.load_pem_private_key(content.encode(), None)
    except (ValueError, TypeError) as error:
        raise SettingsError(
            f"{file} holds no private key in PEM: skitter identity {file} --new makes one"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SettingsError(
            f"{file} holds a key of another kind than Ed25519: skitter identity --new makes one"
        )
    return key


def public_jwk(key: Ed25519PrivateKey) -> dict[str, str]:
    """RFC 8037: the public key, as far as its thumbprint goes."""
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return {"crv": "Ed25519", "kty": "OKP", "x": _base64url(raw)}


def thumbprint(key: Ed25519PrivateKey) -> str:
    """RFC 7638: what the signature calls its key."""
    canonical = json.dumps(public_jwk(key), separators=(",", ":"), sort_keys=True)
    return _base64url(hashlib.sha256(canonical.encode()).digest())


def key_directory(key: Ed25519PrivateKey, purpose: str) -> dict[str, Any]:
    """What `DIRECTORY` of the signature agent serves, as application/http-message-signatures-directory+json."""
    return {"keys": [{**public_jwk(key), "kid": thumbprint(key), "use": "sig"}], "purpose": purpose}


def _base64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
