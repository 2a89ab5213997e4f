import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface Props {
  readonly title: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
}

/** In the way of everything else until it is closed; Escape closes it. Open for as long as it is rendered. */
export const Dialog = ({ title, close, children }: Props) => {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={ref} onClose={close} aria-label={title}>
      <div class="stack">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
};
