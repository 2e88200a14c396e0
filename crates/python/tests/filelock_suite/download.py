"""Downloads the source distribution of filelock, whose tests the wheel does not have.

`pip download` would build it first, which needs tools that its tests do not.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
import sys
import tarfile
import urllib.parse
import urllib.request

INDEX = "https://pypi.org/simple/filelock/"
NAME = "filelock-4.2.10.tar.gz"
SHA256 = "fcc3c0cb8bfe7f4b3bb0e231c04b15dbad068cb3c2515f343d8fde4dce93bd5d"


def main(folder: str) -> None:
    with urllib.request.urlopen(INDEX, timeout=120) as page:
        links = re.findall(r'href="([^"]+)"', page.read().decode())
    link = next(html.unescape(link) for link in links if f"/{NAME}" in link)
    with urllib.request.urlopen(urllib.parse.urljoin(INDEX, link), timeout=120) as response:
        archive = response.read()
    if hashlib.sha256(archive).hexdigest() != SHA256:
        sys.exit(f"{NAME} is not what it was")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        if hasattr(tarfile, "data_filter"):
            files.extraction_filter = tarfile.data_filter
        # Older versions of Python have no filter; the sum above says what is in the archive.
        files.extractall(folder)


if __name__ == "__main__":
    main(sys.argv[1])
