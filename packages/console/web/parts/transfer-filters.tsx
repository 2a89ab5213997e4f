import { app } from '../api/session.ts';
import { FILTERS } from '../api/transfers.ts';
import type { FilterName, Filters } from '../api/transfers.ts';
import { texts } from '../texts/index.ts';
import { transfersWords } from '../texts/transfers.ts';
import { Chips } from './chips.tsx';
import { FilterSheet } from './filter-sheet.tsx';
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
  const { names } = transfersWords.value;
  return name === 'peer' ? names.peer[app.value] : names[name];
};

interface ChipsProps {
  readonly filters: Filters;
  readonly peers: Peers;
  readonly change: (filters: Filters) => void;
}

/** What is filtered by, each to be taken away by itself. */
export const FilterChips = ({ filters, peers, change }: ChipsProps) => {
  const transfers = transfersWords.value;
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

/** A form with every filter. */
export const FilterForm = ({ filters, peers, change }: ChipsProps) => (
  <FilterSheet
    names={FILTERS}
    change={change}
    field={(name) => ({ title: nameOf(name), input: <Field name={name} filters={filters} peers={peers} /> })}
  />
);

interface FieldProps {
  readonly name: FilterName;
  readonly filters: Filters;
  readonly peers: Peers;
}

const Field = ({ name, filters, peers }: FieldProps) => {
  const value = filters[name] ?? '';
  const { common } = texts.value;
  if (isChoice(name)) {
    return (
      <select name={name} defaultValue={value}>
        <option value="">{common.any}</option>
        {CHOICES[name].map((one) => (
          <option key={one} value={one} selected={value === one}>
            {choiceWord(name, one)}
          </option>
        ))}
      </select>
    );
  }
  if (name === 'peer' && peers.options.length > 0) {
    return (
      <select name={name}>
        <option value="">{common.any}</option>
        {peers.options.map(([one, word]) => (
          <option key={one} value={one} selected={value === one}>
            {word}
          </option>
        ))}
      </select>
    );
  }
  if (name === 'from' || name === 'to') return <input name={name} type="date" defaultValue={value} />;
  if (name === 'diagnostic') return <input name={name} pattern="\d-\d{3}" placeholder="2-205" defaultValue={value} />;
  return <input name={name} defaultValue={value} />;
};
