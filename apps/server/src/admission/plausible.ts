/** Whether `text` can be an identifier of the configuration at all; NUL, for one, is nothing to ask a database for. */
export const isPlausible = (text: string, max: number): boolean => text.length <= max && /^[\x20-\x7e]+$/.test(text);
