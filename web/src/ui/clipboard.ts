import { notify } from '../state/notices';

// The modern way exists only on https and localhost; the page may be opened by address.
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'offscreen';
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    if (!copied) notify('This browser does not let the page copy.');
    return copied;
  }
}
