// Bars of counts: a picture in SVG, with the same figures as text for whoever does not see it.

import { html } from "../ui.js";

/** bars: [{label, value, note}] */
export function Bars({ title, bars }) {
  const most = Math.max(1, ...bars.map((bar) => bar.value));
  const [rowHeight, labelWidth, width] = [26, 132, 640];
  const room = width - labelWidth - 160;
  return html`<svg class="bars" viewBox=${`0 0 ${width} ${bars.length * rowHeight}`} role="img" aria-label=${`${title}: ${bars.map((bar) => `${bar.label}: ${bar.note}`).join("; ")}`}>
    ${bars.map(
      (bar, at) => html`<g transform=${`translate(0 ${at * rowHeight})`}>
        <text class="bar-label" x=${labelWidth - 10} y="17" text-anchor="end">${bar.label}</text>
        <rect class="bar-room" x=${labelWidth} y="5" width=${room} height="16" rx="3" />
        <rect class="bar" x=${labelWidth} y="5" width=${bar.value ? Math.max(3, (bar.value / most) * room) : 0} height="16" rx="3" />
        <text class="bar-note" x=${labelWidth + room + 8} y="17">${bar.note}</text>
      </g>`,
    )}
  </svg>`;
}
