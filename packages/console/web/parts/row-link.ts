/**
 * A row goes where its link goes. A click on the link itself is the link's own: followed by both, one would have to go back twice, and a new tab
 * would not leave this one alone.
 */
export const besideLink =
  (go: () => void) =>
  ({ target }: MouseEvent): void => {
    if (target instanceof Element && target.closest('a') === null) go();
  };
