/** Hands bytes that the page has to the browser, as a file under a name. */
export const save = (content: BlobPart, name: string, type = 'application/octet-stream'): void => {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
};
