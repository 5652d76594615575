;;; esp.el --- ESP with qj lsp -*- lexical-binding: t -*-
;; Emacs 28 with eglot (a part of Emacs 29): `(load "/path/to/esp.el")` in init.el.
(define-derived-mode esp-mode prog-mode "ESP"
  "Programs of processes and channels."
  (setq-local comment-start "// " comment-start-skip "//+\\s-*" indent-tabs-mode nil tab-width 2)
  (modify-syntax-entry ?/ ". 124b" esp-mode-syntax-table)
  (modify-syntax-entry ?* ". 23" esp-mode-syntax-table)
  (modify-syntax-entry ?\n "> b" esp-mode-syntax-table))
(add-to-list 'auto-mode-alist '("\\.esp\\'" . esp-mode))
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '(esp-mode . ("qj" "lsp"))))
(add-hook 'esp-mode-hook #'eglot-ensure)
(provide 'esp)
;;; esp.el ends here
