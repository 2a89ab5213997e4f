import { useState } from 'preact/hooks';

import { app } from '../api/session.ts';
import { FILTERS } from '../api/transfers.ts';
import type { FilterName, Filters } from '../api/transfers.ts';
import { texts } from '../texts/index.ts';
import { Chips } from './chips.tsx';
import type { Peers } from './peers.ts';

/** Values of those filters that have a few. */
const CHOICES = {
  status: ['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED'],
  direction: ['SEND', 'RECEIVE'],
  type: ['FILE', 'MESSAGE'],
  restartable: ['true', 'false'],
} as const;

const isChoice = (name: FilterName): name is keyof typeof CHOICES => Object.hasOwn(CHOICES, name);

const choiceWord = (name: keyof typeof CHOICES, value: string): string => {
  const { status, direction, type, common } = texts.value;
  if (name === 'restartable') return value === 'true' ? common.yes : common.no;
  const words: Readonly<Record<string, string>> = { status, direction, type }[name];
  return words[value] ?? value;
};

const nameOf = (name: FilterName): string => {
  const { names } = texts.value.transfers;
  return name === 'peer' ? names.peer[app.value] : names[name];
};

interface ChipsProps {
  readonly filters: Filters;
  readonly peers: Peers;
  readonly change: (filters: Filters) => void;
}

/** What is filtered by, each to be taken away by itself. */
export const FilterChips = ({ filters, peers, change }: ChipsProps) => {
  const { transfers } = texts.value;
  const chips = FILTERS.filter((name) => filters[name] !== undefined).map((name) => {
    const value = filters[name] ?? '';
    const word = isChoice(name) ? choiceWord(name, value) : name === 'peer' ? peers.nameOf(value) : value;
    return { name, title: nameOf(name), word };
  });
  return (
    <Chips
      of={chips}
      label={transfers.filters}
      removeLabel={transfers.removeFilter}
      clearLabel={transfers.clear}
      remove={(name) => change(Object.fromEntries(Object.entries(filters).filter(([one]) => one !== name)))}
      clear={() => change({})}
    />
  );
};

/** A form with every filter, opened by its button. */
export const FilterForm = ({ filters, peers, change }: ChipsProps) => {
  const [isOpen, setOpen] = useState(false);
  const { transfers, common } = texts.value;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const chosen = FILTERS.map((name) => [name, given.get(name)] as const);
    change(Object.fromEntries(chosen.filter(([, value]) => typeof value === 'string' && value !== '')));
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
            {FILTERS.map((name) => (
              <label key={name} class="field">
                <span>{nameOf(name)}</span>
                {isChoice(name) ? (
                  <select name={name} defaultValue={filters[name] ?? ''}>
                    <option value="">{common.any}</option>
                    {CHOICES[name].map((value) => (
                      <option key={value} value={value} selected={filters[name] === value}>
                        {choiceWord(name, value)}
                      </option>
                    ))}
                  </select>
                ) : name === 'peer' && peers.options.length > 0 ? (
                  <select name={name}>
                    <option value="">{common.any}</option>
                    {peers.options.map(([value, word]) => (
                      <option key={value} value={value} selected={filters[name] === value}>
                        {word}
                      </option>
                    ))}
                  </select>
                ) : name === 'from' || name === 'to' ? (
                  <input name={name} type="date" defaultValue={filters[name] ?? ''} />
                ) : name === 'diagnostic' ? (
                  <input name={name} pattern="\d-\d{3}" placeholder="2-205" defaultValue={filters[name] ?? ''} />
                ) : (
                  <input name={name} defaultValue={filters[name] ?? ''} />
                )}
              </label>
            ))}
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
