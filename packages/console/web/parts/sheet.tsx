import { useRef, useState } from 'preact/hooks';

import { words as configuration } from '../texts/configuration.ts';
import { texts } from '../texts/index.ts';
import { Card } from './page.tsx';

interface Props {
  readonly title: string;
  /** Name and value; those without a value are left out. */
  readonly rows: readonly (readonly [name: string, value: string | undefined])[];
  /** A text of several lines below them, with its name. */
  readonly attached?: readonly [name: string, text: string];
}

/** As a mail has it: the values one below the other. */
const textOf = (title: string, rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return [title, '', ...rows.map(([name, value]) => `${`${name}:`.padEnd(width)}${value}`)].join('\n');
};

/** What a partner must be told, to be copied into a mail or printed. */
export const Sheet = ({ title, rows, attached }: Props) => {
  const { setUp } = configuration.value;
  const { common } = texts.value;
  const [isCopied, setCopied] = useState(false);
  const shown = useRef<HTMLPreElement>(null);
  const said = rows.filter((row): row is readonly [string, string] => row[1] !== undefined && row[1] !== '');
  const below = attached === undefined ? [] : ['', `${attached[0]}:`, attached[1].trim()];
  const text = [textOf(title, said), ...below].join('\n');
  const copy = async (): Promise<void> => {
    if (shown.current !== null) getSelection()?.selectAllChildren(shown.current);
    // Only over HTTPS, or on this machine; elsewhere it is selected, for the keys of the system.
    if ('clipboard' in navigator) await navigator.clipboard.writeText(text);
    setCopied('clipboard' in navigator);
  };
  return (
    <Card
      title={setUp.sheet}
      actions={
        <span class="row no-print">
          {isCopied && <span role="status">{common.copied}</span>}
          <button type="button" class="button" onClick={() => void copy().catch(() => setCopied(false))}>
            {common.copy}
          </button>
          <button type="button" class="button" onClick={() => print()}>
            {setUp.print}
          </button>
        </span>
      }
    >
      <p class="quiet no-print">{setUp.sheetHint}</p>
      <pre ref={shown} class="sheet-text mono" tabIndex={0} aria-label={setUp.sheet}>
        {text}
      </pre>
    </Card>
  );
};
