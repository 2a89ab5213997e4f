import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';

import { texts } from '../texts/index.ts';
import { Dialog } from './dialog.tsx';
import { leave } from './leaving.tsx';
import { menu } from './menu.ts';

/** Where a key is a letter of a text. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:input|select|textarea)$/i.test(target.tagName));

/** How long `g` waits for the letter of a page. */
const SECOND_KEY_MS = 1500;

/** `/` searches, `g` and a letter go to a page, `?` tells the keys. */
export const Keys = () => {
  const { route } = useLocation();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    let goes = 0;
    const pressed = (event: KeyboardEvent): void => {
      if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      const item = event.timeStamp - goes < SECOND_KEY_MS ? menu.value.find(({ key }) => key === event.key) : undefined;
      goes = event.key === 'g' ? event.timeStamp : 0;
      if (item !== undefined) leave(() => route(item.path));
      else if (event.key === '/') document.getElementById('search')?.focus();
      else if (event.key === '?') setOpen(true);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, [route]);
  if (!isOpen) return null;
  const { keys, pages } = texts.value;
  const rows = [
    ['/', keys.search],
    ...menu.value.map(({ key, name }) => [`g ${key}`, keys.go(pages[name])]),
    ['?', keys.help],
  ] as const;
  return (
    <Dialog title={keys.title} close={() => setOpen(false)}>
      <table>
        <tbody>
          {rows.map(([key, what]) => (
            <tr key={key}>
              <td>
                <kbd>{key}</kbd>
              </td>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
};
