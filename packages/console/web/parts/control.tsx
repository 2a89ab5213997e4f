import type { Field } from '../api/fields.ts';
import { NO_SECRET } from '../api/fields.ts';
import { words as configuration } from '../texts/configuration.ts';
import { texts } from '../texts/index.ts';

interface Props {
  readonly id: string;
  readonly name: string;
  readonly field: Field;
  readonly text: string;
  /** What an empty control stands for. */
  readonly empty: string | undefined;
  /** A secret that is there already. */
  readonly isKept: boolean;
  readonly describedBy: string | undefined;
  readonly isWrong: boolean;
  readonly isFixed: boolean;
  readonly options: readonly string[];
  readonly change: (text: string) => void;
}

const wordOf = (name: string, value: string | number): string => {
  const { values } = configuration.value;
  const byName: Readonly<Record<string, Readonly<Record<string, string>>>> = values;
  return byName[name]?.[String(value)] ?? String(value);
};

const Choices = ({ id, name, field, text, change, describedBy }: Props) => {
  const chosen = text.split('\n').filter((one) => one !== '');
  return (
    <div class="row" role="group" aria-labelledby={`${id}-label`} aria-describedby={describedBy}>
      {(field.values ?? []).map((value, index) => (
        <label key={value} class="check">
          <input
            {...(index === 0 ? { id } : {})}
            type="checkbox"
            checked={chosen.includes(String(value))}
            onChange={(event) => {
              const others = chosen.filter((one) => one !== String(value));
              change([...others, ...(event.currentTarget.checked ? [String(value)] : [])].sort().join('\n'));
            }}
          />
          {wordOf(name, value)}
        </label>
      ))}
    </div>
  );
};

const Secret = (props: Props) => {
  const { id, field, text, isKept, describedBy, isWrong, change, empty } = props;
  const words = configuration.value.form;
  const isNone = text === NO_SECRET;
  return (
    <>
      <input
        id={id}
        type="password"
        autocomplete="new-password"
        disabled={isNone}
        value={isNone ? '' : text}
        placeholder={isKept ? words.keep : (empty ?? '')}
        aria-describedby={describedBy}
        aria-invalid={isWrong}
        onInput={(event) => change(event.currentTarget.value)}
      />
      {isKept && field.nullable && (
        <label class="check quiet">
          <input
            type="checkbox"
            checked={isNone}
            onChange={(event) => change(event.currentTarget.checked ? NO_SECRET : '')}
          />
          {words.noSecret}
        </label>
      )}
    </>
  );
};

const Select = ({ id, name, field, text, empty, describedBy, isWrong, change }: Props) => {
  const { common } = texts.value;
  const isFlag = field.kind === 'flag';
  const values = isFlag ? ['true', 'false'] : (field.values ?? []);
  const hasEmpty = field.nullable === true || field.default === undefined;
  return (
    <select
      id={id}
      value={text}
      aria-describedby={describedBy}
      aria-invalid={isWrong}
      onChange={(event) => change(event.currentTarget.value)}
    >
      {hasEmpty && (
        <option value="" selected={text === ''}>
          {empty ?? common.none}
        </option>
      )}
      {values.map((value) => (
        <option key={value} value={String(value)} selected={text === String(value)}>
          {isFlag ? (value === 'true' ? common.yes : common.no) : wordOf(name, value)}
        </option>
      ))}
    </select>
  );
};

/** The control of a field, by its kind. */
export const Control = (props: Props) => {
  const { id, name, field, text, empty, describedBy, isWrong, isFixed, options, change } = props;
  if (field.secret) return <Secret {...props} />;
  if (field.kind === 'choices') return <Choices {...props} />;
  if (field.kind === 'choice' || field.kind === 'flag') return <Select {...props} />;
  const common = {
    ...{ id, name, value: text, placeholder: empty ?? '', spellcheck: false, disabled: isFixed },
    ...{ 'aria-describedby': describedBy, 'aria-invalid': isWrong },
    onInput: (event: { readonly currentTarget: { readonly value: string } }) => change(event.currentTarget.value),
  };
  if (field.kind === 'list' || name === 'description') {
    return <textarea {...common} rows={Math.min(Math.max(text.split('\n').length + 1, 2), 8)} />;
  }
  const isNumber = field.kind === 'whole';
  return (
    <>
      <input
        {...common}
        type={isNumber ? 'number' : 'text'}
        {...(isNumber ? { min: field.min, max: field.max, step: 1 } : {})}
        {...(options.length === 0 ? {} : { list: `${id}-options` })}
        autocomplete="off"
      />
      {options.length > 0 && (
        <datalist id={`${id}-options`}>
          {options.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </>
  );
};

/** A value in words, for those who may not change it. */
export const shownValue = (name: string, field: Field, text: string): string => {
  const { common } = texts.value;
  if (field.kind === 'flag' && text !== '') return text === 'true' ? common.yes : common.no;
  return text
    .split('\n')
    .map((one) => (field.values === undefined ? one : wordOf(name, one)))
    .join(', ');
};
