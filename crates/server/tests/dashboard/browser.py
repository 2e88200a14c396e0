"""A page in Chromium, with everything it asks for and complains about written down."""

import json
import shutil
import urllib.request
from contextlib import contextmanager

from playwright.sync_api import TimeoutError, sync_playwright

# Generous: what is waited for comes within a second, but a busy machine may take its time.
WAIT_MS = 60_000


class Control:
    """Has the other side hold, add and end things."""

    def __init__(self, url):
        self.url = url

    def __getattr__(self, verb):
        def ask(**asked):
            if "by" in asked:
                asked["as"] = asked.pop("by")
            body = json.dumps(asked).encode()
            headers = {"content-type": "application/json"}
            request = urllib.request.Request(f"{self.url}/{verb}", body, headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)

        return ask


class Tab:
    """One open page."""

    def __init__(self, page, url):
        self.page = page
        self.url = url
        self.complaints = []
        self.requests = []
        page.set_default_timeout(WAIT_MS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self.listen)

    def listen(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, view="/overview"):
        self.page.goto(f"{self.url}/#{view}")
        try:
            self.page.wait_for_selector("#connection[data-state=live]")
        except TimeoutError as error:
            state = self.page.locator("#connection").get_attribute("data-state", timeout=WAIT_MS)
            raise AssertionError(f"the page is {state}; {self.complaints}; it asked for {self.requests}") from error
        return self.page

    def assert_quiet(self, but=()):
        """Nothing went wrong, and nobody but this server was asked for anything."""
        loud = [text for text in self.complaints if not any(part in text for part in but)]
        assert not loud, loud
        strangers = [url for url in self.requests if not url.startswith((self.url + "/", "data:"))]
        assert not strangers, strangers


@contextmanager
def browser():
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        assert path, "chromium is missing: run scripts/test"
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=2 * WAIT_MS)
        try:
            yield chromium
        finally:
            chromium.close()


@contextmanager
def tab(url, **settings):
    settings.setdefault("viewport", {"width": 1440, "height": 900})
    with browser() as chromium:
        context = chromium.new_context(**settings)
        yield Tab(context.new_page(), url)
