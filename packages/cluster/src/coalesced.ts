/**
 * Work that is asked for more often than it can be done: never twice at a time, and what is asked meanwhile is done once
 * more afterwards. `work` must not reject.
 */
export const coalesced = (work: () => void | Promise<void>): (() => void) => {
  let asked = 0;
  const run = async (): Promise<void> => {
    for (let seen = 0; seen !== asked;) {
      seen = asked;
      await work();
    }
    asked = 0;
  };
  return () => {
    asked += 1;
    if (asked === 1) void run();
  };
};
