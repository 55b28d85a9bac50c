"""A certificate that signs itself and that nobody trusts, made of nothing but the standard library.

Its key is no secret: the primes are two of Mersenne's. Its signature is empty, since who doesn't know the issuer looks
at no signature.
"""

from __future__ import annotations

import ssl
from base64 import encodebytes
from pathlib import Path

__all__ = ["server_context"]

_P, _Q, _E = 2**1279 - 1, 2**2203 - 1, 65_537
_RSA = bytes.fromhex("300d06092a864886f70d0101010500")
_SHA256_WITH_RSA = bytes.fromhex("300d06092a864886f70d01010b0500")
_COMMON_NAME = bytes.fromhex("0603550403")


def server_context(folder: Path) -> ssl.SSLContext:
    """Return what a TLS server on this machine presents itself with: a self-signed certificate for `localhost`."""
    key_file, certificate_file = folder / "own.key", folder / "own.crt"
    key_file.write_text(_pem("RSA PRIVATE KEY", _private_key()), encoding="ascii")
    certificate_file.write_text(_pem("CERTIFICATE", _certificate()), encoding="ascii")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file, key_file)
    return context


def _private_key() -> bytes:
    d = pow(_E, -1, (_P - 1) * (_Q - 1))
    numbers = (0, _P * _Q, _E, d, _P, _Q, d % (_P - 1), d % (_Q - 1), pow(_Q, -1, _P))
    return _sequence(*map(_integer, numbers))


def _certificate() -> bytes:
    name = _sequence(_der(0x31, _sequence(_COMMON_NAME, _der(0x0C, b"localhost"))))
    validity = _sequence(_der(0x17, b"200101000000Z"), _der(0x17, b"491231235959Z"))
    public_key = _sequence(_RSA, _bits(_sequence(_integer(_P * _Q), _integer(_E))))
    version = _der(0xA0, _integer(2))
    content = _sequence(version, _integer(1), _SHA256_WITH_RSA, name, validity, name, public_key)
    return _sequence(content, _SHA256_WITH_RSA, _bits(bytes(436)))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2, "big")
    return bytes([tag]) + length + content


def _sequence(*parts: bytes) -> bytes:
    return _der(0x30, b"".join(parts))


def _integer(value: int) -> bytes:
    return _der(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _bits(content: bytes) -> bytes:
    return _der(0x03, b"\0" + content)


def _pem(kind: str, content: bytes) -> str:
    return f"-----BEGIN {kind}-----\n{encodebytes(content).decode('ascii')}-----END {kind}-----\n"
