// SPDX-License-Identifier: Apache-2.0
// The report's style. Colours are variables: light ones, dark ones where the reader prefers them or picks them at the top of the page, and
// light ones again on paper.
#include "loadgen/report_html_parts.h"

namespace weir::loadgen::html {

const char* const kStyle = R"css(
:root{color-scheme:light;--page:#f6f6f4;--card:#fff;--ink:#1a1a19;--soft:#5f5e5a;--line:#e3e2dd;--band:#00000010;
--s0:#2a78d6;--s1:#d9541e;--s2:#12925f;--s3:#6b4fc0;--s4:#b07a00;--s5:#c2408a;--s6:#0f8a9c;--s7:#6d6c66;
--good:#12805c;--bad:#c4321c;--warn:#8f6400}
@media (prefers-color-scheme:dark){:root:not(:has(#light:checked)){color-scheme:dark;--page:#151514;--card:#1f1f1d;--ink:#ecebe6;--soft:#a3a29b;
--line:#383835;--band:#ffffff12;--s0:#5b9df0;--s1:#f0814f;--s2:#3fbf8a;--s3:#a48df0;--s4:#d9a83a;--s5:#e67bb6;--s6:#4fc0d0;--s7:#a3a29b;
--good:#3fbf8a;--bad:#ff7a63;--warn:#e0b04a}}
:root:has(#dark:checked){color-scheme:dark;--page:#151514;--card:#1f1f1d;--ink:#ecebe6;--soft:#a3a29b;--line:#383835;--band:#ffffff12;
--s0:#5b9df0;--s1:#f0814f;--s2:#3fbf8a;--s3:#a48df0;--s4:#d9a83a;--s5:#e67bb6;--s6:#4fc0d0;--s7:#a3a29b;
--good:#3fbf8a;--bad:#ff7a63;--warn:#e0b04a}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1160px;margin:0 auto;padding:24px 20px 60px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px}h2{font-size:18px;margin:0 0 12px}h3{font-size:15px;margin:14px 0 6px}
p{margin:6px 0}header p,.soft{color:var(--soft)}header p,h1,li,td,th,p{overflow-wrap:anywhere}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;margin:16px 0}
.theme{float:right;color:var(--soft);font-size:13px;margin-left:16px}.theme label{margin-left:10px;cursor:pointer}
.badge{display:inline-block;padding:1px 10px;border-radius:99px;font-size:13px;font-weight:600;border:1px solid currentColor;vertical-align:3px}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px;margin:16px 0}
.tiles div{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 14px}
.tiles b{display:block;font-size:21px;font-weight:600;line-height:1.3}.tiles span{color:var(--soft);font-size:13px}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:18px}.wide{grid-template-columns:1fr}
figure{margin:0;min-width:0}figcaption{font-weight:600;font-size:14px}
svg{display:block;width:100%;height:auto;font:12px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
details{margin-top:4px;font-size:13px}summary{cursor:pointer;color:var(--soft)}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:5px 10px;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
th:first-child,td:first-child,.words td,.words th{text-align:left}thead th{color:var(--soft);font-weight:600}tbody th{font-weight:500}
.note{fill:var(--soft);font-size:11.5px;paint-order:stroke;stroke:var(--card);stroke-width:4px}.tick{fill:var(--soft);font-size:11.5px}.label{fill:var(--soft);font-size:12px}.grid{stroke:var(--line)}.axis{stroke:var(--soft)}
.guide{stroke:var(--soft);stroke-dasharray:5 4}.band{fill:var(--band)}.line{fill:none;stroke-width:2;stroke-linejoin:round}
.points{stroke-width:3.5;stroke-linecap:round;opacity:.6}.dashed{stroke-dasharray:6 4}.dot{stroke:var(--card);stroke-width:1}.fill{opacity:.16}.track{fill:var(--line)}.part{stroke:var(--card)}
.s0{stroke:var(--s0)}.s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}.s4{stroke:var(--s4)}.s5{stroke:var(--s5)}
.s6{stroke:var(--s6)}.s7{stroke:var(--s7)}.f0{fill:var(--s0)}.f1{fill:var(--s1)}.f2{fill:var(--s2)}.f3{fill:var(--s3)}
.f4{fill:var(--s4)}.f5{fill:var(--s5)}.f6{fill:var(--s6)}.f7{fill:var(--s7)}
footer{color:var(--soft);font-size:13px;margin-top:20px}
@media print{:root,:root:has(#dark:checked){color-scheme:light;--page:#fff;--card:#fff;--ink:#000;--soft:#444;--line:#ccc;--band:#0000000d;
--s0:#2a78d6;--s1:#d9541e;--s2:#12925f;--s3:#6b4fc0;--s4:#b07a00;--s5:#c2408a;--s6:#0f8a9c;--s7:#6d6c66;--good:#12805c;--bad:#c4321c;--warn:#8f6400}
.theme,details{display:none}section{break-inside:avoid;border:0;padding:8px 0}main{padding:0;max-width:none}}
)css";

}  // namespace weir::loadgen::html
