import { useLocation } from 'preact-iso';

import type { Body } from '../api/configuration.ts';
import type { ResourceName } from '../api/fields.ts';
import { words as configuration } from '../texts/configuration.ts';
import { ResourceForm } from './form.tsx';
import type { FormProps } from './form.tsx';
import { addressOf } from './listing.tsx';
import { Page } from './page.tsx';

interface Props<R extends ResourceName> extends Omit<FormProps<R>, 'save' | 'submit' | 'row' | 'children'> {
  readonly path: string;
  readonly title: string;
  readonly back: string;
  /** @returns the identifier of the new one */
  readonly create: (body: Body) => Promise<string>;
}

/** A page with the form of a new one, which leads to the page of what it has made. */
export const Creation = <R extends ResourceName>({ path, title, back, create, ...form }: Props<R>) => {
  const { route } = useLocation();
  return (
    <Page title={title}>
      <p>
        <a href={path}>{back}</a>
      </p>
      <section class="card" aria-label={title}>
        <ResourceForm
          {...form}
          submit={title === '' ? configuration.value.common.save : title}
          save={async (body) => {
            const id = await create(body);
            setTimeout(() => route(addressOf(path, id), true));
          }}
        />
      </section>
    </Page>
  );
};
