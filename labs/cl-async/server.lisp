;;; The text's server on cl-async: AFTER seconds after a request it answers on the same connection, and closes it. Each second
;;; it tells how many connections are open, and how many answers it has finished. ADDRESS, PORT, AFTER, STATS from the environment.
;;; sbcl --core cl-async.core --noinform --non-interactive --load server.lisp

(require :asdf)
;; In the image that `build` makes it is there.
(unless (find-package :cl-async)
  (handler-bind ((warning #'muffle-warning))
    (asdf:load-system :cl-async)))

(defpackage :lab
  (:use :cl))
(in-package :lab)

(defun from-environment (variable default)
  (let ((value (uiop:getenv variable)))
    (if (or (null value) (string= value "")) default value)))

(defparameter *http-response*
  (babel:string-to-octets
   (with-output-to-string (s)
     (format s "HTTP/1.1 200 OK~c~c" #\return #\newline)
     (format s "Date: Wed, 03 Oct 2012 23:43:10 GMT~c~c" #\return #\newline)
     (format s "Content-Type: text/plain~c~c" #\return #\newline)
     (format s "Content-Length: 9~c~c" #\return #\newline)
     (format s "~c~c" #\return #\newline)
     (format s "omglolwtf"))))

(defun serve (address port after stats)
  (as:start-event-loop
   (lambda ()
     (let ((quit nil) (finished 0) (last-finished 0) (last-time (get-internal-real-time)) (listener nil))
       (labels ((answer (socket)
                  (unless (as:socket-closed-p socket)
                    (as:write-socket-data socket *http-response*
                                          :write-cb (lambda (socket)
                                                      (as:close-socket socket)
                                                      (incf finished)))))
                (show-stats ()
                  (let* ((counts (as:stats))
                         (now (get-internal-real-time))
                         (seconds (/ (max 1 (- now last-time)) internal-time-units-per-second)))
                    (format t "incoming: ~a~%outgoing: ~a~%finished: ~a~%rate: ~,3f req/s~%~%"
                            (getf counts :incoming-tcp-connections) (getf counts :outgoing-tcp-connections)
                            finished (/ (- finished last-finished) seconds))
                    (finish-output)
                    (setf last-finished finished
                          last-time now))
                  (unless quit
                    (as:delay #'show-stats :time 1)))
                (stop (signal)
                  (unless quit
                    (setf quit t)
                    (as:free-signal-handler signal)
                    (as:close-tcp-server listener)
                    (as:exit-event-loop))))
         (setf listener
               (as:tcp-server address port
                              (lambda (socket data)
                                (declare (ignore data))
                                (as:delay (lambda () (answer socket)) :time after))
                              :event-cb (lambda (event)
                                          ;; A client that has gone is none of a server's troubles.
                                          (unless (typep event '(or as:tcp-eof as:tcp-reset))
                                            (format t "tcp server event: ~a~%" event)))))
         (as:signal-handler 2 #'stop)
         (as:signal-handler 15 #'stop)
         (format t "Starting TCP server.~%")
         (finish-output)
         (when stats
           (show-stats)))))
   :catch-app-errors t)
  (format t "TCP server exited.~%"))

(serve (from-environment "ADDRESS" "0.0.0.0")
       (parse-integer (from-environment "PORT" "9009"))
       (let ((*read-eval* nil)) (read-from-string (from-environment "AFTER" "5")))
       (string= (from-environment "STATS" "1") "1"))
