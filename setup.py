"""The text for a package index: the README, whose relative links become addresses in the repository. setup.cfg has the rest."""

import configparser
import re
from pathlib import Path

import setuptools

config = configparser.ConfigParser()
config.read("setup.cfg", encoding="utf-8")
version = re.search(r'^__version__ = "(.*)"', Path("posref/__init__.py").read_text(encoding="utf-8"), re.MULTILINE)[1]
readme, url = Path("README.md").read_text(encoding="utf-8"), config["metadata"]["url"]
readme = re.sub(r"(!\[[^\]]*\]\()(?!\w+:)", rf"\1{url}/raw/v{version}/", readme)
setuptools.setup(long_description=re.sub(r"(?<=\]\()(?!\w+:|#)", f"{url}/blob/v{version}/", readme))
