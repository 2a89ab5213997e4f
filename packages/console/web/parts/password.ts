/** No letter or digit that is taken for another on paper or on the phone. */
const SIGNS = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';
/** PI 5 holds no more. */
const LENGTH = 8;

/** A password that nobody has thought of: each sign as likely as any other. */
export const newPassword = (): string => {
  const most = 256 - (256 % SIGNS.length);
  const signs: string[] = [];
  while (signs.length < LENGTH) {
    const fair = [...crypto.getRandomValues(new Uint8Array(32))].filter((byte) => byte < most);
    signs.push(...fair.map((byte) => SIGNS[byte % SIGNS.length] ?? ''));
  }
  return signs.slice(0, LENGTH).join('');
};
