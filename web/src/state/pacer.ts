// Does work soon, however often it is asked for: at most once per frame, and so seldom that it
// takes no more than a quarter of the time. Long code is slow to colour, and tokens come fast.
export class Pacer {
  private pending = false;
  private again = false; // asked for while the work was being done
  private timer = 0;
  private frame = 0;
  private notBefore = 0;

  constructor(private readonly work: () => void) {}

  soon(): void {
    this.again = true;
    if (this.pending) return;
    this.pending = true;
    const wait = Math.max(this.notBefore - performance.now(), 0);
    if (document.hidden) this.timer = window.setTimeout(this.run, Math.max(wait, 500)); // no frames there
    else if (wait > 0) this.timer = window.setTimeout(() => (this.frame = requestAnimationFrame(this.run)), wait);
    else this.frame = requestAnimationFrame(this.run);
  }

  cancel(): void {
    this.again = false;
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
  }

  private readonly run = (): void => {
    const begun = performance.now();
    this.again = false;
    this.work();
    // The page is drawn anew after this function and before the next task.
    setTimeout(() => {
      const now = performance.now();
      this.notBefore = now + 3 * (now - begun);
      this.pending = false;
      if (this.again) this.soon();
    });
  };
}
