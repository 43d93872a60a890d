"""Files of numpy arrays (npz), which are derived and can be computed again: what loading a damaged one may raise."""

import zipfile
import zlib

# The zip format has flags for encryption (RuntimeError) and for versions and methods that zipfile does not know.
UNREADABLE = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, SyntaxError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)
