// Line drawings on a grid of 24.
const paths = {
  menu: 'M4 7h16M4 12h16M4 17h10',
  plus: 'M12 5v14M5 12h14',
  settings: 'M4 8h9m5 0h2M4 16h2m5 0h9M15.5 5.5v5M8.5 13.5v5',
  send: 'M12 19V5m-6 6 6-6 6 6',
  stop: 'M7 7h10v10H7z',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  again: 'M19.5 12a7.5 7.5 0 1 1-2.2-5.3L20 9.4M20 4.5v4.9h-4.9',
  edit: 'm5 15.5 10-10 3.5 3.5-10 10H5z',
  remove: 'M5 7h14M10 7V4.5h4V7m-7.5 0 .8 12.5h9.4L17.5 7',
  export: 'M12 4v11m-4.5-4.5L12 15l4.5-4.5M5 19.5h14',
  sun: 'M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2.5v2m0 15v2M2.5 12h2m15 0h2M5.3 5.3l1.4 1.4m10.6 10.6 1.4 1.4m0-13.4-1.4 1.4M6.7 17.3l-1.4 1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  system: 'M4 5h16v11H4zM9 20h6m-3-4v4',
  close: 'm6 6 12 12M18 6 6 18',
  down: 'M12 5v13m-5.5-5.5L12 18l5.5-5.5',
  tool: 'M14.5 6.5a4 4 0 0 1 5-1.2l-3 3 .2 2 2 .2 3-3a4 4 0 0 1-5.2 5.2L8 21l-3-3 8.3-8.5a4 4 0 0 1 1.2-3z',
  mark: 'M3 7h9c3 0 3-4 6-4M3 12h13c3 0 3-3 5-3M3 17h7c4 0 4 4 8 4',
} as const;

export type IconName = keyof typeof paths;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={paths[name]} />
  </svg>
);

interface IconButtonProps {
  icon: IconName;
  label: string;
  onClick: () => void;
  class?: string;
  disabled?: boolean;
  expanded?: boolean;
}

export const IconButton = ({ icon, label, onClick, class: className, disabled, expanded }: IconButtonProps) => (
  <button
    type="button"
    class={`icon-button ${className ?? ''}`}
    aria-label={label}
    title={label}
    aria-expanded={expanded}
    disabled={disabled}
    onClick={onClick}
  >
    <Icon name={icon} />
  </button>
);
