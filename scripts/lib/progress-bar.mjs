const WIDTH = 30;
const REDRAW_MS = 100;

const megabytes = (bytes) => (bytes / 1024 / 1024).toFixed(1);

/** A bar on one line of a terminal; elsewhere (a log, a pipe) only its last line. */
export function progressBar(label, total) {
  const live = process.stdout.isTTY;
  let drawn = 0;
  const draw = (bytes, rest) => {
    const part = total === 0 ? 1 : Math.min(1, bytes / total);
    const bar = '#'.repeat(Math.round(part * WIDTH)).padEnd(WIDTH, '.');
    return `${label.padEnd(13)} [${bar}] ${String(Math.round(part * 100)).padStart(3)} %  ${rest}`;
  };
  return {
    update(bytes) {
      if (!live || performance.now() - drawn < REDRAW_MS) return;
      drawn = performance.now();
      process.stdout.write(`\r${draw(bytes, `${megabytes(bytes)} MB`)}`);
    },
    /** @param ms from the request to the end of the transfer */
    end(bytes, ms) {
      const rest = `${megabytes(bytes)} MB in ${(ms / 1000).toFixed(2)} s, ${megabytes((bytes / ms) * 1000)} MB/s`;
      process.stdout.write(`${live ? '\r' : ''}${draw(bytes, rest)}\n`);
    },
  };
}
