"""First answers of single-page apps, as the tools of the field make them, and honest pages that look like them.

What a guess "this page needs a browser" is measured on. Written by hand after what each tool puts out; the scripts
that they name do not exist.
"""
# ruff: noqa: E501
# A page is read more easily on one line.

from __future__ import annotations

_HEAD = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{0}</title>{1}</head>'
_TAG = '<script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script><script>window.dataLayer=window.dataLayer||[];function gtag(){dataLayer.push(arguments)}gtag("js",new Date());</script>'


def _page(title: str, head: str, body: str) -> str:
    return _HEAD.format(title, head) + f"<body>{body}</body></html>"


SHELLS: dict[str, str] = {
    "react": _page(
        "React App",
        '<script defer src="/static/js/main.1a2b.js"></script>',
        '<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div>',
    ),
    "vite-react": _page(
        "Vite",
        '<script type="module" crossorigin src="/assets/index-1a.js"></script><link rel="stylesheet" href="/assets/index.css">',
        '<div id="root"></div>',
    ),
    "vite-vue": _page(
        "Vite + Vue", '<script type="module" src="/assets/index-2b.js"></script>', '<div id="app"></div>'
    ),
    "vue-cli": _page(
        "shop",
        '<script defer src="/js/chunk-vendors.js"></script>',
        "<noscript><strong>We're sorry but shop doesn't work properly without JavaScript enabled. Please enable it to continue.</strong></noscript><div id=app></div>",
    ),
    "angular": _page(
        "Store",
        '<base href="/"><link rel="modulepreload" href="chunk.js">',
        '<app-root></app-root><script src="polyfills.js" type="module"></script><script src="main.js" type="module"></script>',
    ),
    "angularjs": _page(
        "Old",
        "",
        '<div ng-app="shop"><div ng-view></div></div><script src="angular.js"></script><script src="app.js"></script>',
    ),
    "svelte": _page("Svelte app", '<script defer src="/build/bundle.js"></script>', ""),
    "sveltekit": _page(
        "",
        '<link rel="modulepreload" href="/_app/start.js">',
        '<div style="display: contents"><script>{ const element = document.currentScript.parentElement; Promise.all([import("/_app/start.js"), import("/_app/app.js")]).then(([kit, app]) => kit.start(app, element)); }</script></div>',
    ),
    "preact": _page("Preact", "", '<script type="module" src="/bundle.js"></script><div id="app"></div>'),
    "solid": _page(
        "Solid App",
        "",
        '<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div><script src="/src/index.js" type="module"></script>',
    ),
    "lit": _page("Lit", '<script type="module" src="/my-app.js"></script>', "<my-app></my-app>"),
    "polymer": _page(
        "Polymer",
        '<script src="/bower_components/webcomponentsjs/webcomponents-loader.js"></script>',
        '<shop-app unresolved="">Loading</shop-app><script src="x.js"></script>',
    ),
    "next-client": _page(
        "",
        '<script src="/_next/static/chunks/main.js" defer></script>',
        '<div id="__next"></div><script id="__NEXT_DATA__" type="application/json">{"props":{},"page":"/","query":{},"buildId":"x"}</script>',
    ),
    "nuxt-spa": _page(
        "",
        '<link rel="preload" as="script" href="/_nuxt/app.js">',
        '<div id="__nuxt"></div><script>window.__NUXT__={config:{}}</script><script src="/_nuxt/app.js"></script>',
    ),
    "gatsby-offline": _page("", "", '<div id="___gatsby"></div><script src="/app-1.js" async></script>'),
    "ember": _page(
        "Ember",
        "",
        '<script src="/assets/vendor.js"></script><script src="/assets/shop.js"></script><div id="ember-basic-dropdown-wormhole"></div>',
    ),
    "quasar": _page("Quasar", '<script defer src="/js/app.js"></script>', "<div id=q-app></div>"),
    "ionic": _page(
        "Ionic App",
        "",
        '<app-root></app-root><noscript>Please enable JavaScript to continue using this application.</noscript><script src="main.js"></script>',
    ),
    "expo": _page(
        "expo",
        "<style>#root{display:flex}</style>",
        '<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div><script src="/_expo/index.js" defer></script>',
    ),
    "flutter": _page(
        "flutter",
        '<script src="flutter.js" defer></script>',
        '<script>window.addEventListener("load", function(ev) { _flutter.loader.loadEntrypoint({}); });</script>',
    ),
    "blazor": _page(
        "Blazor",
        "",
        '<div id="app"><svg class="loading-progress"><circle r="40%"/></svg><div class="loading-progress-text"></div></div><div id="blazor-error-ui">An unhandled error has occurred.</div><script src="_framework/blazor.webassembly.js"></script>',
    ),
    "yew": _page(
        "Yew", '<script type="module">import init from "/app.js"; init("/app_bg.wasm");</script>', ""
    ),
    "elm": _page(
        "Elm",
        '<script src="/elm.js"></script>',
        '<div id="app"></div><script>Elm.Main.init({node: document.getElementById("app")})</script>',
    ),
    "mithril": _page("Mithril", "", '<script src="bin/app.js"></script>'),
    "docsify": _page(
        "Document",
        '<link rel="stylesheet" href="vue.css">',
        '<div id="app">Please wait...</div><script>window.$docsify={name:"x",repo:""}</script><script src="docsify.min.js"></script>',
    ),
    "redoc": _page(
        "Redoc", "", '<redoc spec-url="/openapi.yaml"></redoc><script src="redoc.standalone.js"></script>'
    ),
    "swagger": _page(
        "Swagger UI",
        '<link rel="stylesheet" href="swagger-ui.css">',
        '<div id="swagger-ui"></div><script src="swagger-ui-bundle.js"></script><script src="swagger-initializer.js"></script>',
    ),
    "graphiql": _page(
        "GraphiQL",
        "",
        '<div id="graphiql">Loading...</div><script src="graphiql.min.js"></script><script>fetch("/graphql")</script>',
    ),
    "discourse-like": _page(
        "Forum",
        '<script defer src="/assets/vendor.js"></script>' + _TAG,
        '<noscript data-path="/">This site needs JavaScript.</noscript><section id="main"></section><div id="app"></div>',
    ),
    "spinner": _page(
        "Loading",
        '<script type="module" src="/main.js"></script>',
        '<div id="root"><div class="spinner"><div></div><div></div></div>Loading...</div>',
    ),
    "jquery": _page(
        "List",
        '<script src="jquery.js"></script>',
        '<div id="content"></div><script>$.getJSON("/api/list", function (rows) { $("#content").html(rows.join("")); })</script>',
    ),
    "nested": _page(
        "Nested", '<script src="/app.js" defer></script>', '<div class="layout"><div id="app"></div></div>'
    ),
}

_WORDS = "Our shop is open from nine to five on every day but Sunday, and we are glad to see you there. " * 3

HONEST: dict[str, str] = {
    "login": _page(
        "Log in",
        '<script src="/js/login.js"></script>',
        "<h1>Log in</h1><form method=post action=/login><input name=user><input name=password type=password><button>Log in</button></form>",
    ),
    "login-root": _page(
        "Log in",
        '<script src="/js/a.js"></script>',
        "<div id=root><h1>Welcome back, please log in here</h1><form action=/login><input name=user></form><a href=/forgot>Forgot it?</a></div>",
    ),
    "search": _page(
        "Search",
        '<script src="/s.js"></script>',
        "<form action=/search><input name=q><button>Search</button></form>",
    ),
    "not-found": _page("404", _TAG, "<h1>Not found</h1><p>There is nothing here.</p><a href=/>Home</a>"),
    "not-found-bare": _page("404", "", "<h1>404 Not Found</h1><hr><center>nginx</center>"),
    "photo": _page(
        "Sunset",
        '<script src="https://www.googletagmanager.com/gtm.js"></script>',
        '<img src=/sunset.jpg alt="Sunset"><a href=/next>next</a>',
    ),
    "photo-script": _page("Sunset", _TAG, "<img src=/sunset.jpg>"),
    "coming-soon": _page(
        "Soon",
        '<script defer data-domain="x" src="https://plausible.io/js/script.js"></script>',
        "<h1>Coming soon</h1>",
    ),
    "refresh": _page(
        "Moved", '<meta http-equiv="refresh" content="0; url=/new"><script src="/x.js"></script>', ""
    ),
    "script-redirect": _page("Moved", "", '<script>window.location.replace("/new/")</script>'),
    "script-redirect-2": _page(
        "Moved",
        "",
        '<script>document.location.href = "/en/" + location.hash</script><noscript>JavaScript</noscript>',
    ),
    "frameset": "<!DOCTYPE html><title>Frames</title><script src=f.js></script><frameset cols='20%,80%'><frame src=a.html><frame src=b.html></frameset>",
    "iframe": _page("Map", '<script src="/map.js"></script>', '<iframe src="/map.html"></iframe>'),
    "empty": "",
    "blank": _page("", "", ""),
    "text": _page(
        "Story",
        '<script src="/jquery.js"></script>',
        f"<p>{_WORDS}</p><a href=/a>a</a><a href=/b>b</a><a href=/c>c</a>",
    ),
    "text-without-links": _page(
        "Story", '<script src="/jquery.js"></script>', f"<article>{_WORDS * 3}</article>"
    ),
    "server-rendered": _page(
        "Next",
        '<script src="/_next/main.js" defer></script>',
        f'<div id="__next"><main><h1>Shop</h1><p>{_WORDS}</p><a href=/a>a</a><a href=/b>b</a><a href=/c>c</a></main></div>',
    ),
    "server-rendered-short": _page(
        "Next",
        '<script src="/_next/main.js" defer></script>',
        '<div id="__next"><main><h1>Three things</h1><p>They are listed below, with their prices, and may be ordered by telephone from Monday to Friday.</p><ul><li><a href=/a>chair</a></li><li><a href=/b>table</a></li><li><a href=/c>lamp</a></li></ul></main></div>',
    ),
    "parked": _page(
        "example.test",
        '<script src="https://www.google-analytics.com/analytics.js"></script>',
        "<p>This domain may be for sale.</p>",
    ),
    "cookie-wall": _page(
        "News",
        '<script src="https://consent.cookiebot.com/uc.js"></script>',
        "<p>We use cookies.</p><a href=/accept>Accept</a>",
    ),
    "json-ld": _page(
        "Recipe",
        '<script type="application/ld+json">{"@type":"Recipe"}</script>',
        "<h1>Soup</h1><p>Boil it.</p>",
    ),
    "listing": _page("Index of /", "", "<h1>Index of /</h1><pre><a href=../>../</a></pre>"),
    "captcha": _page(
        "Just a moment...",
        '<script src="https://challenges.cloudflare.com/turnstile/v0/api.js"></script>',
        "<p>Checking your browser.</p>",
    ),
}
