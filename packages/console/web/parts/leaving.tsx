import { signal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import { useLayoutEffect } from 'preact/hooks';

import { texts } from '../texts/index.ts';
import { Dialog } from './dialog.tsx';

/** Whether something was typed that is not saved. */
const unsaved = signal(false);
/** The address of the page that it was typed on. */
let here = '';
/** Where the person was about to go. */
const wanted = signal<(() => void) | undefined>(undefined);

/** Goes elsewhere; where something is not saved, only after the person was asked. */
export const leave = (go: () => void): void => {
  if (unsaved.value) wanted.value = go;
  else go();
};

/**
 * The browser's Back asks first, too. To be called before the router listens: events of the window reach its listeners in their order, and where
 * the router came first the page was gone, and what was typed with it.
 */
export const heedBack = (): void =>
  addEventListener('popstate', (event) => {
    if (!unsaved.value) return;
    event.stopImmediatePropagation();
    history.pushState(null, '', here);
    leave(() => history.go(-1));
  });

const linkOf = (event: MouseEvent): HTMLAnchorElement | undefined => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.button !== 0) return undefined;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  const isOwn = link !== null && link.origin === location.origin && !/^_blank$/.test(link.target);
  return isOwn && link.getAttribute('href')?.startsWith('#') === false ? link : undefined;
};

/** Keeps what is typed from being lost by a slip: links, the keys of the console, the browser's Back (`heedBack`) and its close button ask first. */
export const useUnsaved = (isUnsaved: boolean): void => {
  const { route } = useLocation();
  // Before the next click can come: an effect would wait for the next frame.
  useLayoutEffect(() => {
    unsaved.value = isUnsaved;
    if (!isUnsaved) return undefined;
    here = location.pathname + location.search;
    const clicked = (event: MouseEvent): void => {
      const link = linkOf(event);
      if (link === undefined) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      leave(() => route(link.pathname + link.search));
    };
    const closes = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('click', clicked, true);
    addEventListener('beforeunload', closes);
    return () => {
      unsaved.value = false;
      removeEventListener('click', clicked, true);
      removeEventListener('beforeunload', closes);
    };
  }, [isUnsaved, route]);
};

/** The question; in the frame of every page. */
export const Leaving = () => {
  const go = wanted.value;
  const { leaving } = texts.value;
  if (go === undefined) return null;
  // A dialog tells that it was closed a moment later, when another question may be there.
  const stay = (): void => {
    if (wanted.value === go) wanted.value = undefined;
  };
  return (
    <Dialog title={leaving.title} close={stay}>
      <p>{leaving.text}</p>
      <div class="row">
        <button type="button" class="button main" onClick={stay}>
          {leaving.stay}
        </button>
        <button
          type="button"
          class="button danger"
          onClick={() => {
            stay();
            unsaved.value = false;
            go();
          }}
        >
          {leaving.leave}
        </button>
      </div>
    </Dialog>
  );
};
