/** A browser for the tests of the console: Debian's package chromium, or any Chromium in the PATH. */
import { findProgram } from './process.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Its path, or undefined where this machine has none. */
export const findChromium = () => NAMES.map((name) => findProgram(name)).find((path) => path !== undefined);
