import { colon } from '../texts/format.ts';

export interface Chip {
  readonly name: string;
  readonly title: string;
  readonly word: string;
}

interface Props {
  readonly of: readonly Chip[];
  readonly label: string;
  readonly removeLabel: (title: string) => string;
  readonly clearLabel: string;
  readonly remove: (name: string) => void;
  readonly clear: () => void;
}

/** What is filtered by, each to be taken away by itself. */
export const Chips = ({ of, label, removeLabel, clearLabel, remove, clear }: Props) =>
  of.length === 0 ? null : (
    <ul class="row" aria-label={label}>
      {of.map(({ name, title, word }) => (
        <li key={name} class="chip">
          <span>
            {title}
            {colon.value} <strong>{word}</strong>
          </span>
          <button type="button" aria-label={removeLabel(title)} onClick={() => remove(name)}>
            ×
          </button>
        </li>
      ))}
      {of.length > 1 && (
        <li>
          <button type="button" class="button plain" onClick={clear}>
            {clearLabel}
          </button>
        </li>
      )}
    </ul>
  );
