/** One stylesheet without external fonts or images: light or dark as the reader's system, and readable on a phone. */
export const style = `
:root { color-scheme: light dark; --text: #1c2128; --soft: #57606a; --page: #fff; --raised: #f5f6f8; --line: #d8dde3; --link: #1f57b5; --mark: #9a3412 }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ed; --soft: #9da7b3; --page: #14171c; --raised: #1d2229; --line: #333b46; --link: #82b1ff; --mark: #f0a46b }
}
* { box-sizing: border-box }
html { scroll-padding-top: 1rem }
body { margin: 0 auto; max-width: 78rem; padding: 0 1.25rem 4rem; background: var(--page); color: var(--text); font: 1rem/1.6 system-ui, sans-serif; display: grid; grid-template: "head head" auto "nav main" auto / 14rem minmax(0, 1fr); column-gap: 2.5rem }
header { grid-area: head; padding: 2rem 0 1rem; border-bottom: 1px solid var(--line) }
header p { margin: 0; color: var(--soft) }
nav { grid-area: nav; position: sticky; top: 0; align-self: start; padding-top: 2rem; max-height: 100vh; overflow-y: auto }
nav ul { list-style: none; margin: 0; padding: 0 }
nav li { margin: .35rem 0 }
main { grid-area: main; padding-top: .5rem }
h1 { margin: 0; font-size: 1.75rem }
h2 { margin: 0 0 .5rem; font-size: 1.4rem }
h3 { margin: 2rem 0 .5rem; font-size: 1.05rem }
section { padding: 1.5rem 0 2rem; border-bottom: 1px solid var(--line) }
section:last-child { border-bottom: 0 }
p { max-width: 44rem }
a { color: var(--link) }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px }
.skip { position: absolute; left: -100rem }
.skip:focus { left: 1rem; top: .5rem; background: var(--page) }
code { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere }
pre { margin: .5rem 0; padding: .9rem 1rem; background: var(--raised); border: 1px solid var(--line); border-radius: .4rem; overflow-x: auto }
pre code { overflow-wrap: normal }
.endpoint { display: inline-block; margin: .25rem 0 .5rem; padding: .3rem .7rem; background: var(--raised); border: 1px solid var(--line); border-radius: .4rem }
.method { font-weight: 700; font-size: .85rem; color: var(--link) }
details { margin: .4rem 0 }
summary { cursor: pointer; font-weight: 600 }
table { width: 100%; margin: .75rem 0 1.5rem; border-collapse: collapse; table-layout: fixed }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem }
th, td { text-align: left; vertical-align: top; padding: .45rem .75rem .45rem 0; border-top: 1px solid var(--line); font-weight: 400 }
thead th { font-weight: 600; border-top: 0 }
thead th:first-child { width: 34% }
thead th:nth-child(2) { width: 24% }
.errors thead th:first-child { width: 12% }
.errors thead th:nth-child(2) { width: 32% }
.variant th { padding-top: 1rem; color: var(--soft) }
.required { color: var(--mark); font-size: .8rem; white-space: nowrap }
@media (max-width: 48rem) {
  body { display: block }
  nav { position: static; padding-top: 1rem; max-height: none }
  table, tbody, tr, th, td, caption { display: block }
  thead { position: absolute; left: -100rem }
  tr { padding: .5rem 0; border-top: 1px solid var(--line) }
  th, td { padding: 0; border: 0 }
  td:empty { display: none }
}
@media print {
  body { display: block }
  nav { position: static; max-height: none }
  pre code { white-space: pre-wrap; overflow-wrap: anywhere }
}
`
