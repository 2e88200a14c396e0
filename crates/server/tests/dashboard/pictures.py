"""Pictures of the page over a store in which a team of agents is at work."""

import time
from pathlib import Path

from browser import tab

FOLDER = Path(__file__).parents[4] / "target" / "dashboard"

BACKEND = [
    ("schema", "Draw up the schema", []), ("store", "Write the store", ["schema"]),
    ("api", "Serve the API", ["store"]), ("api-tests", "Test the API", ["api"]),
    ("limits", "Limit requests per client", ["api"]), ("tokens", "Tokens with roles", ["api"]),
]
FRONTEND = [
    ("layout", "Lay out the pages", []), ("forms", "Forms that explain what is wrong", ["layout"]),
    ("dark", "A dark theme", ["layout"]), ("login", "Fix the login redirect loop", []),
    ("charts", "Charts of the last week", ["layout"]), ("print", "A style for paper", []),
]
DOCS = [
    ("guide", "Write the guide", []), ("faq", "Answer what people ask", ["guide"]),
    ("changes", "List what changed", []), ("upgrade", "How to move from version 1", []),
]


def task(section, entry, **more):
    name, title, after = entry
    return {"id": name, "title": title, "depends_on": after, "section": section, **more}


def populate(control):
    """Some minutes of a team's work, so that the timeline has something to show."""
    control.add(tasks=[
        *[task("backend", entry, labels=["rust"]) for entry in BACKEND],
        *[task("frontend", entry, labels=["web"]) for entry in FRONTEND],
        *[task("docs", entry) for entry in DOCS],
        {"id": "logo", "title": "Three drafts of a logo", "status": "review", "labels": ["design"]},
        {"id": "import", "title": "Import of old accounts", "section": "backend", "status": "failed",
         "error": "row 4,113 has no address; 2 of 3 tries ended here"},
        {"id": "flaky", "title": "Find out why CI is red on Mondays", "status": "blocked",
         "error": "its workers fell silent three times"},
        {"id": "survey", "title": "Ask users about prices", "status": "cancelled"},
        *[{"id": f"t{n}", "title": title, "status": "completed"} for n, title in enumerate([
            "Set up the repository", "Choose a licence", "Continuous integration", "A first release",
            "Collect crash reports", "Rename the command", "Measure start-up", "Names for all codes",
            "Remove the old parser", "Say what a lease is", "Pin the toolchain", "Sign the tags"])],
    ])
    def pause(seconds):
        time.sleep(seconds * 4)

    control.lease(by="mallory", resource="deploy", operation="release 1.4.0", process=True, ttl_ms=600_000)
    control.claim(by="agent-1", task="schema")
    control.claim(by="agent-2", task="layout")
    control.guard(by="ci", resource="lock:build-cache", mode="shared", operation="nightly build")
    pause(6)
    control.guard(by="ci-2", resource="lock:build-cache", mode="shared", operation="pull request 218")
    control.finish(by="agent-1", task="schema", how="complete")
    control.finish(by="agent-2", task="layout", how="complete")
    control.claim(by="agent-1", task="store")
    control.claim(by="agent-2", task="login")
    control.kill(by="mallory")
    pause(3)
    control.guard(by="alice", resource="deploy", operation="release 1.4.0")
    control.claim(by="agent-3", task="guide")
    control.guard(by="trainer-1", resource="gpu", mode="slot:3", operation="fine-tune, run 12")
    pause(7)
    control.guard(by="trainer-2", resource="gpu", mode="slot:3", operation="fine-tune, run 13")
    control.finish(by="agent-1", task="store", how="complete")
    control.claim(by="agent-1", task="api")
    control.finish(by="agent-2", task="login", how="the redirect loops only behind a proxy")
    control.claim(by="agent-2", task="forms")
    control.release(by="alice", resource="deploy")
    control.guard(by="bob", resource="deploy", operation="release 1.4.1")
    pause(6)
    control.lease(by="nightly-backup", resource="database", operation="pg_dump", ttl_ms=60_000)
    control.guard(by="agent-2", resource="path:web/src/forms/**", operation="Forms that explain what is wrong")
    control.finish(by="agent-3", task="guide", how="complete")
    control.claim(by="agent-3", task="faq")
    pause(5)
    for name in ("carol", "release-bot", "dave"):
        control.wait(by=name, resource="deploy", operation="release 1.4.2")
        pause(2)
    control.wait(by="migrate", resource="database", operation="add an index")
    pause(10)


def shoot(opened, name, view="/overview", whole=False):
    page = opened.open(view)
    page.wait_for_timeout(1_200)
    page.mouse.move(0, 0)
    page.screenshot(path=FOLDER / f"{name}.png", full_page=whole)
    opened.assert_quiet()


PAGES = {
    "overview": "/overview", "tasks": "/tasks", "list": "/tasks?as=list", "timeline": "/timeline",
    "workers": "/workers", "events": "/events", "task": "/task/api", "lock": "/lock/gpu", "worker": "/worker/agent-1",
}


def pictures(url, control):
    FOLDER.mkdir(parents=True, exist_ok=True)
    populate(control)
    phone = {"width": 390, "height": 844}
    for scheme in ("light", "dark"):
        for name, view in PAGES.items():
            with tab(url, color_scheme=scheme) as opened:
                shoot(opened, f"{name}-{scheme}", view)
    for name, view in PAGES.items():
        with tab(url, viewport=phone, color_scheme="light", device_scale_factor=2) as opened:
            shoot(opened, f"{name}-narrow", view, whole=name in ("overview", "task"))
    with tab(url, color_scheme="light") as opened:
        page = opened.open()
        page.get_by_role("button", name="Break deploy").click()
        page.screenshot(path=FOLDER / "break-light.png")
    pictures_of_many(url, control)
    control.gate(role="read", token="secret")
    with tab(url, color_scheme="light") as opened:
        opened.page.goto(url)
        opened.page.get_by_label("Token").wait_for()
        opened.page.screenshot(path=FOLDER / "sign-in-light.png")


def pictures_of_many(url, control, total=100_000):
    """The page over very many tasks, and how long its longest frame was."""
    for start in range(0, total, 5_000):
        control.add(tasks=[
            {"id": f"n{n}", "title": f"Task number {n}", "section": f"section {n % 7}", "labels": [f"label-{n % 11}"],
             "status": ("completed", "pending", "pending", "failed")[n % 4]}
            for n in range(start, start + 5_000)
        ])
    with tab(url, color_scheme="light") as opened:
        page = opened.page
        page.add_init_script("""
            window.longest = 0;
            let last = performance.now();
            const frame = (now) => { window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(frame); };
            requestAnimationFrame(frame);
        """)
        began = time.monotonic()
        opened.open("/tasks")
        page.locator(f'[data-id="n{total - 4}"]').wait_for()
        print(f"{total} tasks: the board was there after {time.monotonic() - began:.1f} s")
        page.wait_for_timeout(2_000)
        page.screenshot(path=FOLDER / "many-board-light.png")
        page.get_by_role("button", name="List").click()
        for _ in range(20):
            known = page.evaluate("document.querySelector('.rows').clientHeight")
            page.evaluate("document.querySelector('.rows-box').scrollTop = 1e9")
            page.wait_for_function("known => document.querySelector('.rows').clientHeight > known", arg=known)
        page.screenshot(path=FOLDER / "many-list-light.png")
        began = time.monotonic()
        page.goto(f"{url}/#/tasks?q=number+{total // 2 + 1}")
        page.locator(f'[data-id="n{total // 2 + 1}"]').wait_for()
        print(f"found one of {total} after {time.monotonic() - began:.1f} s")
        print(f"the longest frame took {page.evaluate('window.longest'):.0f} ms")
        opened.assert_quiet()
