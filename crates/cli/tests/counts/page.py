"""Prints the numbers that the page shows, as JSON. `python page.py URL`."""

import json
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

READ = """() => {
  const shown = {};
  for (const tile of document.querySelectorAll('.tile')) {
    shown[tile.querySelector('span').textContent] = Number(tile.querySelector('b').textContent);
  }
  for (const part of document.querySelectorAll('.legend span')) {
    const number = part.querySelector('b');
    if (number) shown[part.textContent.replace(number.textContent, '').trim()] = Number(number.textContent);
  }
  const places = [...document.querySelectorAll('.queue:not([hidden]) li')];
  return {
    ...shown,
    title: document.title,
    panel: Number(document.querySelector('.locks').closest('.panel').querySelector('.count').textContent),
    workersPanel: Number(document.querySelector('.workers').closest('.panel').querySelector('.count').textContent),
    bars: [...document.querySelectorAll('#view-overview .span')].map((bar) => bar.getAttribute('class')),
    holds: document.querySelectorAll('.hold').length,
    places: places.length,
  };
}"""

with sync_playwright() as playwright:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "chromium is missing: run scripts/test"
    chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
    page = chromium.new_page(viewport={"width": 1440, "height": 1400})
    page.set_default_timeout(60_000)
    page.goto(sys.argv[1])
    page.wait_for_selector("#connection[data-state=live]")
    page.wait_for_selector(".lock")
    more = page.locator(".panel", has=page.locator(".locks")).locator(".more")
    if more.is_visible():
        more.click()
    shown = page.evaluate(READ)
    chromium.close()

assert shown["title"] == f"({shown['held']}) tenure", shown
assert shown["panel"] == shown["held"], shown
assert shown["workersPanel"] == shown["workers"], shown
assert shown["holds"] == shown["held"] + shown["lapsed"] + shown["dead"], shown
# One that waits for two resources stands in the queue of the one that is held.
assert shown["places"] == shown["waiting"], shown
still_held = [bar for bar in shown["bars"] if "open" in bar.split()]
assert len(still_held) <= shown["held"], shown
print(json.dumps(shown))
