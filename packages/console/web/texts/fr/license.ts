import type { Texts } from '../en/index.ts';

export const license: Texts['license'] = {
  state: 'En vigueur',
  customer: 'Client',
  id: 'Licence',
  ends: 'Fin',
  days: (count: string) => `jours restants : ${count}`,
  clusters: 'Grappes',
  pods: 'Nœuds par grappe',
  key: 'Vérifiée avec',
  install: 'Installer une licence',
  text: 'Texte de la licence',
  file: 'ou son fichier',
  installed: 'La licence est installée, sur tous les nœuds.',
  anyway: 'L’installer quand même',
  extend: 'Prolonger l’évaluation',
  daysMore: 'Jours de plus',
};
