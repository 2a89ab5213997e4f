import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

import { figuresWords } from '../texts/figures.ts';
import { colon } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { Card } from './page.tsx';
import { theme } from './theme.ts';

export interface Series {
  readonly name: string;
  /** Of the colours of the pages: `--good`, `--bad` … */
  readonly colour: string;
  /** `dots`: a line with a dot for each value, so that a single one is seen. */
  readonly kind: 'bars' | 'line' | 'dots';
  readonly values: readonly (number | null)[];
}

interface Props {
  readonly title: string;
  /** Begins of the buckets, milliseconds since 1970. */
  readonly at: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly when: (at: number) => string;
  readonly whenName: string;
  /** Whether its values are counts. */
  readonly isCount?: boolean;
}

const HEIGHT = 200;
/** Steps of the axis between counts: no half of one. */
const COUNTS = [1, 2, 5]
  .flatMap((one) => Array.from({ length: 9 }, (_, power) => one * 10 ** power))
  .sort((a, b) => a - b);

const dark = matchMedia('(prefers-color-scheme: dark)');

/** Changes when the colours do. */
const useScheme = (): string => {
  const [isDark, setDark] = useState(dark.matches);
  useEffect(() => {
    const changed = (): void => setDark(dark.matches);
    dark.addEventListener('change', changed);
    return () => dark.removeEventListener('change', changed);
  }, []);
  return `${theme.value} ${isDark}`;
};

/** A colour as the canvas takes it: `light-dark()` is resolved by an element that has it. */
const resolved = (element: HTMLElement, name: string): string => {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
};

/** A picture for those who see it, and the same figures as a table behind it. */
export const Chart = ({ title, at, series, format, when, whenName, isCount = false }: Props) => {
  const figures = figuresWords.value;
  const home = useRef<HTMLDivElement>(null);
  const scheme = useScheme();
  useEffect(() => {
    const element = home.current;
    if (element === null) return undefined;
    const quiet = resolved(element, '--quiet');
    const axis = { stroke: quiet, grid: { stroke: resolved(element, '--line'), width: 1 }, ticks: { show: false } };
    const bars = uPlot.paths.bars?.({ size: [0.7, 40] });
    const draws = series.map(({ name, colour, kind }): uPlot.Series => {
      const stroke = resolved(element, colour);
      return {
        label: name,
        stroke,
        width: kind === 'bars' ? 0 : 2,
        points: { show: kind === 'dots', size: 5, fill: stroke },
        spanGaps: false,
        ...(kind === 'bars' && bars !== undefined ? { fill: stroke, paths: bars } : {}),
      };
    });
    const step = ((at[1] ?? 0) - (at[0] ?? 0)) / 1000;
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        padding: [8, 24, 0, 0],
        scales: {
          // Half a bucket more on both sides: the first and the last bar are whole.
          x: { range: (_plot, min, max) => [min - step / 2, max + step / 2] },
          y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
        },
        axes: [
          { ...axis, values: (_plot, splits) => splits.map((one) => when(one * 1000)), space: 70, size: 30 },
          { ...axis, values: (_plot, splits) => splits.map(format), size: 72, ...(isCount ? { incrs: COUNTS } : {}) },
        ],
        series: [{}, ...draws],
      },
      [at.map((one) => one / 1000), ...series.map(({ values }) => [...values])],
      element,
    );
    const sized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    sized.observe(element);
    return () => {
      sized.disconnect();
      plot.destroy();
    };
  }, [at, series, scheme]);
  return (
    <Card title={title}>
      {series.length > 1 && (
        <ul class="row legend" aria-hidden="true">
          {series.map(({ name, colour }) => (
            <li key={name} class={`key ${colour.slice(2)}`}>
              {name}
            </li>
          ))}
        </ul>
      )}
      <div ref={home} class="plot" role="img" aria-label={figures.picture(title)} />
      <details>
        <summary>{figures.table}</summary>
        <div class="frame" tabIndex={0} role="group" aria-label={`${title}${colon.value} ${figures.table}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">{whenName}</th>
                {series.map(({ name }) => (
                  <th key={name} scope="col" class="number">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {at.map((one, index) => (
                <tr key={one}>
                  <th scope="row">{when(one)}</th>
                  {series.map(({ name, values }) => {
                    const value = values[index] ?? null;
                    return (
                      <td key={name} class="number">
                        {value === null ? texts.value.common.none : format(value)}
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </Card>
  );
};
