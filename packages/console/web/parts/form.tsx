import { useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import type { Body } from '../api/configuration.ts';
import { bodyOf, draftOf, faultOf, fieldsOf, hasPlaceholder, textOf } from '../api/fields.ts';
import type { Draft, Fault, FieldName, ResourceName } from '../api/fields.ts';
import { Failure } from '../api/failure.ts';
import { may } from '../api/session.ts';
import { words as configuration } from '../texts/configuration.ts';
import type { FieldWords, GroupName } from '../texts/configuration.ts';
import { number } from '../texts/format.ts';
import '../style/configuration.css';
import { useAction } from './action.tsx';
import { Control, shownValue } from './control.tsx';
import { FailureNote } from './failure-note.tsx';
import { wordsOf } from './field-words.ts';
import { useUnsaved } from './leaving.tsx';
import { Facts } from './page.tsx';

/** Which fields stand first, and in which groups the others are, folded. Those that are in none come last. */
export interface Layout<R extends ResourceName> {
  readonly first: readonly FieldName<R>[];
  readonly groups: readonly (readonly [GroupName, readonly FieldName<R>[]])[];
}

export interface FormProps<R extends ResourceName> {
  readonly resource: R;
  readonly layout: Layout<R>;
  /** What is there; undefined: a new one. */
  readonly row?: Readonly<Record<string, unknown>> | undefined;
  /** For a new one, beside the defaults. */
  readonly preset?: Draft;
  /** Words to choose from, by field. */
  readonly options?: Readonly<Partial<Record<FieldName<R>, readonly string[]>>>;
  readonly submit: string;
  readonly save: (body: Body) => Promise<unknown>;
  readonly children?: ComponentChildren;
}

const faultWords = (fault: Fault, { form }: FieldWords): string => {
  const { faults } = configuration.value.form;
  if (fault.kind === 'range') {
    return fault.max === undefined
      ? faults.least(number(fault.min))
      : faults.range(number(fault.min), number(fault.max));
  }
  if (fault.kind === 'length' || fault.kind === 'items') return faults[fault.kind](number(fault.max));
  return fault.kind === 'form' ? (form ?? faults.form) : faults[fault.kind];
};

/** The field that a detail of an error answer names: `allowedFiles[2]` is the list. */
const fieldAt = (path: string): string => path.split(/[.[]/)[0] ?? path;

/** All groups, with those fields that the layout does not name. */
const groupsOf = <R extends ResourceName>(resource: R, { first, groups }: Layout<R>) => {
  const named = new Set<string>([...first, ...groups.flatMap(([, names]) => names)]);
  const rest = Object.keys(fieldsOf(resource)).filter((name) => !named.has(name));
  return rest.length === 0 ? groups : [...groups, ['other', rest] as const];
};

/** What is set, for those who may look only. */
const Shown = ({ resource, row }: { readonly resource: ResourceName; readonly row: Draft }) => (
  <Facts
    of={Object.entries(fieldsOf(resource))
      .filter(([, { secret }]) => !secret)
      .map(([name, field]) => [wordsOf(resource, name).label, shownValue(name, field, row[name] ?? '')] as const)}
  />
);

/** A form of all that can be said of a resource, as the document of the interface has it. */
export const ResourceForm = <R extends ResourceName>(props: FormProps<R>) => {
  const { resource, layout, row, preset = {}, options = {}, submit, save, children } = props;
  const isNew = row === undefined;
  const base: Draft = isNew ? { ...draftOf(resource), ...preset } : draftOf(resource, row);
  const [edits, setEdits] = useState<Draft>({});
  const [isTried, setTried] = useState(false);
  const [served, setServed] = useState<Draft>({});
  const [isSaved, setSaved] = useState(false);
  const action = useAction();
  const draft: Draft = { ...base, ...edits };
  const fields = fieldsOf(resource);
  const dirty = Object.keys(edits).filter((name) => edits[name] !== base[name]);
  useUnsaved(dirty.length > 0 && !action.isRunning);
  const words = configuration.value.form;
  if (!may('admin')) return <Shown resource={resource} row={base} />;

  const wrong = (name: string): string | undefined => {
    const field = fields[name];
    if (served[name] !== undefined) return served[name];
    const isTouched = edits[name] !== undefined && edits[name] !== base[name];
    if (field === undefined || (!isTried && !isTouched)) return undefined;
    const fault = faultOf(field, draft[name] ?? '', isNew);
    if (fault === undefined || (fault.kind === 'required' && !isTried)) return undefined;
    return faultWords(fault, wordsOf(resource, name));
  };

  const show = (name: string | undefined): void => {
    const control = name === undefined ? null : document.getElementById(`field-${name}`);
    const fold = control?.closest('details');
    if (fold) fold.open = true;
    control?.focus();
  };

  const send = async (): Promise<void> => {
    try {
      await save(bodyOf(resource, draft, isNew ? undefined : base));
      setEdits({});
      setTried(false);
      setSaved(true);
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown;
      const at = thrown.details.filter(({ field }) => fields[fieldAt(field)] !== undefined);
      setServed(Object.fromEntries(at.map(({ field, message }) => [fieldAt(field), message])));
      setTimeout(() => show(at[0] === undefined ? undefined : fieldAt(at[0].field)));
      const { status, code, message, requestId, details } = thrown;
      const said = status === 404 && !isNew ? words.gone : status === 412 ? words.changedMeanwhile : message;
      throw new Failure(status, code, said, { requestId, details: details.filter((one) => !at.includes(one)) });
    }
  };

  const submitted = (event: SubmitEvent): void => {
    event.preventDefault();
    setTried(true);
    setSaved(false);
    setServed({});
    const first = Object.entries(fields).find(
      ([name, field]) => faultOf(field, draft[name] ?? '', isNew) !== undefined,
    );
    if (first !== undefined) setTimeout(() => show(first[0]));
    else action.run(send);
  };

  const fieldOf = (name: string) => {
    const field = fields[name];
    if (field === undefined) return null;
    const { label, help, empty } = wordsOf(resource, name);
    const id = `field-${name}`;
    const fault = wrong(name);
    const described = [...(help === undefined ? [] : [`${id}-help`]), ...(fault === undefined ? [] : [`${id}-fault`])];
    const choices = (options as Readonly<Record<string, readonly string[] | undefined>>)[name] ?? [];
    const title = (
      <>
        {label}
        {field.required && isNew && <span class="quiet"> · {words.required}</span>}
      </>
    );
    return (
      <div key={name} class={field.kind === 'list' || name === 'description' ? 'field wide' : 'field'}>
        {field.kind === 'choices' ? (
          <span id={`${id}-label`}>{title}</span>
        ) : (
          <label for={id} id={`${id}-label`}>
            {title}
          </label>
        )}
        <Control
          {...{ id, name, field, options: choices, text: draft[name] ?? '' }}
          empty={hasPlaceholder(field) ? textOf(field.default) : empty}
          isKept={!isNew && field.secret === true}
          describedBy={described.length === 0 ? undefined : described.join(' ')}
          isWrong={fault !== undefined}
          isFixed={field.key === true && !isNew}
          change={(text) => {
            setEdits((last) => ({ ...last, [name]: text }));
            setServed((last) => Object.fromEntries(Object.entries(last).filter(([one]) => one !== name)));
            setSaved(false);
          }}
        />
        {fault !== undefined && (
          <span class="fault" id={`${id}-fault`}>
            {fault}
          </span>
        )}
        {help !== undefined && (
          <span class="help" id={`${id}-help`}>
            {help}
          </span>
        )}
      </div>
    );
  };

  return (
    <form class="stack form" noValidate onSubmit={submitted} aria-label={submit}>
      <div class="fields">{layout.first.map(fieldOf)}</div>
      {groupsOf(resource, layout).map(([group, names]) => (
        <details key={group}>
          <summary>{configuration.value.groups[group]}</summary>
          <div class="fields">{names.map(fieldOf)}</div>
        </details>
      ))}
      {children}
      <FailureNote failure={action.failure} />
      {isSaved && dirty.length === 0 && (
        <p class="note good" role="status">
          {words.saved}
        </p>
      )}
      <div class="row">
        <button class="button main" disabled={action.isRunning || (!isNew && dirty.length === 0)}>
          {submit}
        </button>
        {!isNew && dirty.length > 0 && (
          <button type="button" class="button" onClick={() => setEdits({})}>
            {words.undo}
          </button>
        )}
      </div>
    </form>
  );
};
