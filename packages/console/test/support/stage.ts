/** What every test in a browser shares: one node, and one browser whose tabs are used again from test to test. */
import type { Browser, Page } from 'playwright-core';

import { LOOKS, openBrowser, watch } from './browser.js';
import type { Look, Tab } from './browser.js';
import { startNode } from './node.js';
import type { StartedNode } from './node.js';

/** A tab that no test had before, and no test gets later: of a test that changes what a page cannot take back. */
export type Alone = 'alone';

export class Stage {
  #node: StartedNode | undefined;
  #browser: Browser | undefined;
  /** Tabs that nobody uses, by their look. */
  readonly #idle = new Map<Look, Page[]>();
  /** Tabs of the test that runs; without a look: to be closed after it. */
  readonly #used: { readonly page: Page; readonly look: Look | undefined }[] = [];

  readonly #started = (): StartedNode => {
    if (this.#node === undefined)
      throw new Error('The node is there as soon as the tests run, not while they are described');
    return this.#node;
  };

  /** Its addresses: to be read by tests, not while they are described. */
  readonly node = ((started): Omit<StartedNode, 'stop'> => ({
    get server() {
      return started().server;
    },
    get client() {
      return started().client;
    },
    get pesitPort() {
      return started().pesitPort;
    },
    get sendDirectory() {
      return started().sendDirectory;
    },
  }))(this.#started);

  async start(): Promise<void> {
    [this.#node, this.#browser] = await Promise.all([startNode(), openBrowser()]);
  }

  async stop(): Promise<void> {
    await this.#browser?.close();
    await this.#node?.stop();
  }

  /**
   * A tab with nothing in it, whose storage no other open tab shares. One that another test of the same look has left is taken
   * first: a new one takes a second of processor.
   */
  readonly openTab = async (look: Look = LOOKS.light, alone?: Alone): Promise<Tab> => {
    const page = (alone === undefined ? this.#idle.get(look)?.pop() : undefined) ?? (await this.#newPage(look));
    this.#used.push({ page, look: alone === undefined ? look : undefined });
    return watch(page);
  };

  async #newPage({ scheme, width, locale }: Look): Promise<Page> {
    if (this.#browser === undefined) throw new Error('The browser is there as soon as the tests run');
    const viewport = { width, height: 850 };
    return (await this.#browser.newContext({ colorScheme: scheme, viewport, locale })).newPage();
  }

  /** After each test: its pages ask and follow nothing any more. */
  async tidy(): Promise<void> {
    for (const { page, look } of this.#used.splice(0)) {
      page.removeAllListeners();
      if (look === undefined) {
        await page.context().close();
        continue;
      }
      for (const other of page.context().pages()) if (other !== page) await other.close();
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await page.goto('about:blank');
      this.#idle.set(look, [...(this.#idle.get(look) ?? []), page]);
    }
  }
}
