"""Open a page in Chromium and tell what is there: `python look.py FILE dark|light WIDTH`.

Run by the Python of `.venv-browser`, which has Qt's Chromium and nothing of ours. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import sys

file, scheme, width = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.environ["QT_QPA_PLATFORM"] = "offscreen"
colours = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
os.environ["QTWEBENGINE_CHROMIUM_FLAGS"] = f"--no-sandbox --disable-gpu {colours}"

from PySide6.QtCore import QTimer, QUrl
from PySide6.QtWebEngineCore import QWebEngineUrlRequestInterceptor
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication

LOOK = """(() => {
  const seen = getComputedStyle(document.body);
  const texts = [...document.querySelectorAll('svg text')].map(text => {
    const box = text.getBBox(), whole = text.ownerSVGElement.viewBox.baseVal;
    return {text: text.textContent, inside: box.x >= 0 && box.x + box.width <= whole.width + 1};
  });
  const labels = [...document.querySelectorAll('svg')].flatMap(svg => {
    const marks = [...svg.querySelectorAll('circle')].map(mark => mark.getBBox().x);
    const first = Math.min(...marks);
    return [...svg.querySelectorAll('text[text-anchor=end]')].slice(0, marks.length)
      .map(text => text.getBBox().x + text.getBBox().width <= first + 1);
  });
  return JSON.stringify({
    title: document.title,
    text: seen.color,
    paper: seen.backgroundColor,
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    scripts: document.scripts.length,
    touched: typeof window.touched,
    names: [...document.querySelectorAll('td:first-child code')].map(one => one.textContent),
    texts: texts,
    labels: labels,
    drawings: document.querySelectorAll('svg').length,
    marks: [...document.querySelectorAll('svg circle')].map(one => getComputedStyle(one).fill),
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    behind: document.querySelector('pre').textContent,
  });
})()"""


class Asked(QWebEngineUrlRequestInterceptor):
    """Notes every address that the page wants."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def interceptRequest(self, info: object) -> None:
        self.addresses.append(info.requestUrl().toString())


app = QApplication([])
view = QWebEngineView()
asked = Asked()
view.page().profile().setUrlRequestInterceptor(asked)
view.resize(width, 900)


def told(found: str) -> None:
    print(json.dumps({**json.loads(found), "asked": asked.addresses}))
    app.quit()


def loaded(well: bool) -> None:
    if not well:
        app.exit(1)
    QTimer.singleShot(300, lambda: view.page().runJavaScript(LOOK, told))


view.loadFinished.connect(loaded)
view.load(QUrl.fromLocalFile(file))
view.show()
sys.exit(app.exec())
