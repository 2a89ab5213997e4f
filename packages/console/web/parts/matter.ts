import type { ComponentChildren } from 'preact';

/** Something that needs attention: what, why, what to do. */
export interface Matter {
  readonly key: string;
  readonly mood: 'bad' | 'warn';
  readonly word: string;
  readonly title: string;
  readonly say: ComponentChildren;
  readonly link?: readonly [address: string, word: string];
}
