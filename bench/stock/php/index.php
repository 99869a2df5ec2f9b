<?php
echo 'Hello World!';
