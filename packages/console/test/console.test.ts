/**
 * The console in a real browser, over both apps as `npm start` starts them: one node and one browser for all of `in-browser/`, since
 * starting them takes as long as fifty tests. Left out where the machine has no Chromium (Debian's package `chromium`). With
 * PESIT_SCREENS=<directory> every page is also kept as a picture.
 */
import { afterAll, afterEach, beforeAll, describe } from '@jest/globals';

import { configuration } from './in-browser/configuration.js';
import { looks } from './in-browser/looks.js';
import { oversight } from './in-browser/oversight.js';
import { pages } from './in-browser/pages.js';
import { tlsSetUp } from './in-browser/tls-set-up.js';
import { tools } from './in-browser/tools.js';
import { describeInBrowser } from './support/browser.js';
import { makeSample } from './support/sample.js';
import { Stage } from './support/stage.js';

describeInBrowser('in a browser', () => {
  const stage = new Stage();
  beforeAll(async () => {
    await stage.start();
    await makeSample(stage.node);
  });
  afterEach(() => stage.tidy());
  afterAll(() => stage.stop());

  describe('every page', () => looks(stage));
  describe('the first pages', () => pages(stage));
  describe('the pages that configure', () => configuration(stage));
  describe('the pages that oversee', () => oversight(stage));
  describe('a partner is set up over TLS', () => tlsSetUp(stage));
  describe('the pages that do something', () => tools(stage));
});
