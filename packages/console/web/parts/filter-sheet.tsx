import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

import { texts } from '../texts/index.ts';
import { transfersWords } from '../texts/transfers.ts';

interface Props<N extends string> {
  readonly names: readonly N[];
  /** What was filled in; those left empty are not there. */
  readonly change: (filters: Readonly<Partial<Record<N, string>>>) => void;
  /** The word and the field of a filter. The field has its name. */
  readonly field: (name: N) => { readonly title: string; readonly input: ComponentChildren };
}

/** A form with every filter of a list, opened by its button; Escape closes it. */
export const FilterSheet = <N extends string>({ names, change, field }: Props<N>) => {
  const [isOpen, setOpen] = useState(false);
  const { common } = texts.value;
  const transfers = transfersWords.value;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const chosen = names.map((name) => [name, given.get(name)] as const);
    const filled = chosen.filter(([, value]) => typeof value === 'string' && value !== '');
    change(Object.fromEntries(filled) as Partial<Record<N, string>>);
    setOpen(false);
  };
  return (
    <div
      class="popover"
      onKeyDown={(event) => {
        if (event.key === 'Escape') setOpen(false);
      }}
    >
      <button type="button" class="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {transfers.filter}
      </button>
      {isOpen && (
        <form class="sheet stack" onSubmit={submit} aria-label={transfers.filters}>
          <div class="grid">
            {names.map((name) => {
              const { title, input } = field(name);
              return (
                <label key={name} class="field">
                  <span>{title}</span>
                  {input}
                </label>
              );
            })}
          </div>
          <div class="row">
            <button class="button main">{common.apply}</button>
            <button type="button" class="button" onClick={() => setOpen(false)}>
              {common.close}
            </button>
          </div>
        </form>
      )}
    </div>
  );
};
