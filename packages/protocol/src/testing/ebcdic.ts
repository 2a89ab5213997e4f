/** A line, and its bytes in hex in each code page, by the tables of iconv; `¤` is the euro sign in the younger three. */
export const EBCDIC_LINE = 'Aé [1]{¤}!';
export const EBCDIC_PAGES = {
  '037': 'c15140baf1bbc09fd05a',
  '297': 'c1c04090f1b5519f544f',
  '500': 'c151404af15ac09fd04f',
  '1047': 'c15140adf1bdc09fd05a',
  '1140': 'c15140baf1bbc09fd05a',
  '1147': 'c1c04090f1b5519f544f',
  '1148': 'c151404af15ac09fd04f',
} as const;
