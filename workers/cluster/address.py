"""The address of a cluster, and its access: nothing listens or connects without mutual TLS.

Dask's own protocol carries pickles among scheduler, workers and jobs. So whoever gets a connection can run code there,
and any user of a machine gets one to its loopback.
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from storage.errors import CannotStart
from storage.process.settings import Settings

if TYPE_CHECKING:
    from distributed.security import Security


class TlsFiles(NamedTuple):
    """Files in PEM format: each end shows its certificate, and accepts those alone that the authority has signed."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None


NO_TLS = TlsFiles()


class ClusterAddress(NamedTuple):
    """A cluster, and the address of the store for its workers."""

    url: str
    """of the scheduler"""
    files: TlsFiles
    store_url: str

    @classmethod
    def of(cls, settings: Settings) -> "ClusterAddress | None":
        """The cluster of the settings, if they name one; raises CannotStart for an address that is not allowed."""
        if settings.cluster is None:
            if settings.engine == "cluster":
                raise CannotStart("HALFMOON_ENGINE is cluster, and HALFMOON_CLUSTER names none")
            return None
        files = TlsFiles(settings.cluster_ca, settings.cluster_cert, settings.cluster_key)
        check_address(settings.cluster, files)
        return cls(settings.cluster, files, settings.store_url)


def check_address(address: str, files: TlsFiles) -> None:
    """Raise CannotStart for an address that is none of TLS, and for one without its files."""
    parts = urlsplit(address)
    if parts.scheme != "tls" or not parts.hostname:
        raise CannotStart(
            f"cluster address {address!r}: must be tls://host:port, with certificates; `halfmoon cluster` makes and "
            "prints them"
        )
    for name, path in files._asdict().items():
        if path is None or not path.is_file():
            found = "is not set" if path is None else f"names no file: {path}"
            raise CannotStart(f"cluster address {address!r}: TLS needs HALFMOON_CLUSTER_{name.upper()}, which {found}")


def security_class() -> "type[Security]":
    """Dask's class; raises CannotStart where the extra is not installed."""
    try:
        from distributed.security import Security
    except ImportError:
        raise CannotStart("a cluster needs the extra: pip install 'halfmoon[cluster]'") from None
    return Security


def throw_away_files(folder: Path) -> TlsFiles:
    """Files of an authority for one cluster, which signs itself alone; whoever can read the folder gets in.

    Raises CannotStart where the extra is not installed.
    """
    made = security_class().temporary()
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_text(str(made.tls_worker_cert))
    key.write_text(str(made.tls_worker_key))
    return TlsFiles(cert, cert, key)


def security_of(address: str, files: TlsFiles) -> "Security":
    """The security that Dask requires of connections.

    Raises as ``check_address``, and CannotStart where the extra is not installed.
    """
    check_address(address, files)
    ends = {
        f"tls_{end}_{kind}": str(path)
        for end in ("client", "scheduler", "worker")
        for kind, path in (("cert", files.cert), ("key", files.key))
    }
    return security_class()(require_encryption=True, tls_ca_file=str(files.ca), **ends)
