import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

import { texts } from '../texts/index.ts';

interface PageProps {
  readonly title: string;
  /** Beside the title: what can be done on this page. */
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A page: its title, which the window has too, its actions, its content. */
export const Page = ({ title, actions, children }: PageProps) => {
  const { product } = texts.value;
  useEffect(() => {
    document.title = `${title} · ${product}`;
  }, [title, product]);
  return (
    <>
      <div class="row spread">
        <h1>{title}</h1>
        <div class="row">{actions}</div>
      </div>
      {children}
    </>
  );
};

interface CardProps {
  readonly title: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

export const Card = ({ title, actions, children }: CardProps) => (
  <section class="card" aria-label={title}>
    <div class="row spread">
      <h2>{title}</h2>
      {actions}
    </div>
    {children}
  </section>
);

/** Nothing is here yet: why, and what to do. */
export const Empty = ({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="empty">
    <strong>{title}</strong>
    {children}
  </div>
);

export const Loading = () => (
  <p class="empty" role="status">
    {texts.value.common.loading}
  </p>
);

/** Names and values; those without a value are left out. */
export const Facts = ({ of }: { readonly of: readonly (readonly [string, ComponentChildren])[] }) => (
  <dl class="facts">
    {of
      .filter(([, value]) => value !== null && value !== undefined && value !== '')
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
);
