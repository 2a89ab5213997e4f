import { effect, signal } from '@preact/signals';

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEPT = 'pesit.theme';
const isTheme = (name: string | null): name is Theme => THEMES.some((one) => one === name);
const kept = localStorage.getItem(KEPT);

export const theme = signal<Theme>(isTheme(kept) ? kept : 'auto');

effect(() => {
  if (theme.value === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme.value;
});

export const chooseTheme = (chosen: Theme): void => {
  localStorage.setItem(KEPT, chosen);
  theme.value = chosen;
};
