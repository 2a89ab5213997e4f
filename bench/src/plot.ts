/** The picture of `docs/performance.md`: lines over a logarithmic scale, as an SVG that needs no program. */
import { OVER_DISTANCE, ROUND_TRIPS, INTERVALS, WINDOWS, type WindowResult } from './windows.js';

interface Line {
  readonly label: string;
  readonly values: readonly (number | undefined)[];
  readonly dashed?: boolean;
}

interface Panel {
  readonly title: string;
  readonly ticks: readonly string[];
  readonly lines: readonly Line[];
}

const WIDTH = 460;
const HEIGHT = 300;
const LEFT = 52;
const RIGHT = 104;
const TOP = 34;
const BOTTOM = 34;
const COLOURS = ['#3366aa', '#aa3355', '#228855', '#bb7711', '#664499'];
const DECADES = [1, 10, 100, 1000];

/** Text that may stand in an SVG. */
const escaped = (text: string) => text.replace(/[<>&]/g, (found) => `&#${found.charCodeAt(0)};`);

const panel = ({ title, ticks, lines }: Panel, x0: number): string => {
  const values = lines.flatMap((line) => line.values).filter((value) => value !== undefined);
  const low = Math.min(...values, 1);
  const high = Math.max(...values, 10);
  const x = (index: number) => x0 + LEFT + (index * (WIDTH - LEFT - RIGHT)) / Math.max(1, ticks.length - 1);
  const y = (value: number) =>
    TOP + ((HEIGHT - TOP - BOTTOM) * Math.log(high / Math.max(value, low))) / Math.log(high / low);
  const grid = DECADES.filter((value) => value >= low && value <= high).map(
    (value) =>
      `<line x1="${x(0)}" x2="${x(ticks.length - 1)}" y1="${y(value).toFixed(1)}" y2="${y(value).toFixed(1)}" stroke="#ddd"/>` +
      `<text x="${x(0) - 8}" y="${(y(value) + 4).toFixed(1)}" text-anchor="end">${value}</text>`,
  );
  const labels = ticks.map(
    (tick, index) => `<text x="${x(index).toFixed(1)}" y="${HEIGHT - 12}" text-anchor="middle">${escaped(tick)}</text>`,
  );
  let lastLabel = Infinity;
  const drawn = lines
    .map((line, index) => ({ ...line, colour: COLOURS[index % COLOURS.length]! }))
    .sort((a, b) => (a.values.at(-1) ?? 0) - (b.values.at(-1) ?? 0))
    .map(({ label, values: points, dashed, colour }) => {
      const path = points
        .flatMap((value, index) => (value === undefined ? [] : [`${x(index).toFixed(1)},${y(value).toFixed(1)}`]))
        .join(' ');
      // Labels do not stand on each other: from the lowest line up.
      lastLabel = Math.min(y(points.at(-1) ?? low) + 4, lastLabel - 13);
      return (
        `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"${dashed === true ? ' stroke-dasharray="5 4"' : ''}/>` +
        `<text x="${x(ticks.length - 1) + 8}" y="${lastLabel.toFixed(1)}" fill="${colour}">${escaped(label)}</text>`
      );
    });
  return [
    `<text x="${x0 + LEFT}" y="18" font-weight="bold">${escaped(title)}</text>`,
    ...grid,
    ...labels,
    ...drawn,
  ].join('\n');
};

/** Two panels: speed by interval and window on the disk, and speed by distance. Vertical: MB/s, logarithmic. */
export const plotWindows = (results: readonly WindowResult[]): string => {
  const speed = (name: string) => results.find((row) => row.name === name)?.mbPerSecond;
  const near: Panel = {
    title: 'MB/s on disk by interval; dashed: durability none, window 64',
    ticks: INTERVALS.map((interval) => (interval < 1024 ? `${interval} KB` : `${interval / 1024} MB`)),
    lines: [
      ...WINDOWS.map((window) => ({
        label: `window ${window}`,
        values: INTERVALS.map((interval) => speed(`disk-checkpoint-${interval}x${window}`)),
      })),
      { label: 'none', values: INTERVALS.map((interval) => speed(`disk-none-${interval}x64`)), dashed: true },
    ],
  };
  const far: Panel = {
    title: 'MB/s by round trip, durability checkpoint',
    ticks: ROUND_TRIPS.map((ms) => `${ms} ms`),
    lines: OVER_DISTANCE.map(([interval, window]) => ({
      label: `${interval < 1024 ? `${interval} KB` : `${interval / 1024} MB`} × ${window}`,
      values: ROUND_TRIPS.map((ms) => speed(`disk-checkpoint-${interval}x${window}${ms === 0 ? '' : `-${ms}ms`}`)),
    })),
  };
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${2 * WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="11" fill="#333">`,
    `<rect width="${2 * WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    panel(near, 0),
    panel(far, WIDTH),
    '</svg>',
    '',
  ].join('\n');
};
